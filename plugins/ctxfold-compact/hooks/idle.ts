import type { EngineInterface } from 'claude-code'
import type { Idle } from './settings'

/** The engine's own values, to be put back. */
export type Armed = { percent: string | undefined; window: string | undefined }

/**
 * Lowers the engine's threshold so that it compacts before this turn's first
 * request. Both are needed: the window makes models with small windows compact
 * before a turn at all, the percentage lowers the threshold.
 */
export async function arm($: EngineInterface): Promise<Armed | undefined> {
  const was: Armed = {
    percent: await $.env.get('CLAUDE_AUTOCOMPACT_PCT_OVERRIDE'),
    window: await $.env.get('CLAUDE_CODE_AUTO_COMPACT_WINDOW'),
  }
  try {
    const window = await $.env.set('CLAUDE_CODE_AUTO_COMPACT_WINDOW', '100000')
    const percent = await $.env.set('CLAUDE_AUTOCOMPACT_PCT_OVERRIDE', '1')
    if (window.deny === undefined && percent.deny === undefined) return was
  } catch {
    // Half of it helps nobody: both go back.
  }
  await disarm($, was)
  return undefined
}

export async function disarm($: EngineInterface, was: Armed): Promise<void> {
  await $.env.set('CLAUDE_AUTOCOMPACT_PCT_OVERRIDE', was.percent)
  await $.env.set('CLAUDE_CODE_AUTO_COMPACT_WINDOW', was.window)
}

/** When a request of the main conversation was last answered in this process, and of which session. */
export type Answered = { session: string | undefined; at: number }

/** Whether the pause has cost the cache and the conversation is large enough to matter. */
export async function isIdle($: EngineInterface, idle: Idle, answered: Answered | undefined): Promise<boolean> {
  const { context } = await $.session.usage()
  if ((context.tokens ?? 0) < idle.minTokens) return false
  const env = await $.process.hookEnv()
  // A process may go on with another session, whose time is in its file.
  const isOurs = answered !== undefined && answered.session === env.CLAUDE_CODE_SESSION_ID
  const seconds = isOurs ? Math.max(0, Math.floor(((await $.clock.now()) - answered.at) / 1000)) : undefined
  const run = await $.ctxfold.run({
    args: [
      'mod', 'idle',
      '--after', String(idle.afterMinutes),
      ...(seconds === undefined ? [] : ['--idle-seconds', String(seconds)]),
    ],
    env,
  })
  return run.exitCode === 0 && (JSON.parse(run.stdout) as { idle?: unknown }).idle === true
}

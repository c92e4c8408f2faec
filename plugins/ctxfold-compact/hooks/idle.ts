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

/** Whether the pause has cost the cache and the conversation is large enough to matter. */
export async function isIdle($: EngineInterface, idle: Idle, lastAnswerAt: number): Promise<boolean> {
  const { context } = await $.session.usage()
  if ((context.tokens ?? 0) < idle.minTokens) return false
  const now = await $.clock.now()
  const run = await $.ctxfold.run({
    args: [
      'mod', 'idle',
      '--after', String(idle.afterMinutes),
      ...(lastAnswerAt > 0 ? ['--idle-seconds', String(Math.floor((now - lastAnswerAt) / 1000))] : []),
    ],
    env: await $.process.hookEnv(),
  })
  return run.exitCode === 0 && (JSON.parse(run.stdout) as { idle?: unknown }).idle === true
}

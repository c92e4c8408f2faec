import type { EngineInterface, SessionCompactInput, SessionMessage } from 'claude-code'
import type { Settings } from './settings'

/** The binary's answer, format version 1. */
export type Folded = { messages: SessionMessage[]; note: string }

/** The engine's own summary is wanted, for this reason. */
export class Declined extends Error {}

type Reply = { v?: unknown; messages?: unknown; skip?: unknown; note?: unknown }

/**
 * A row that keeps its handle is written under its old parent or old message
 * id, and a later resume walks past the boundary. Only plain user rows are safe
 * with it, and they need it: it keeps their images.
 */
function safe(messages: readonly SessionMessage[]): SessionMessage[] {
  return messages.map(message => {
    if (message.role === 'user' && message.toolResults === undefined) return message
    const { handle: _handle, ...rest } = message
    return rest
  })
}

const isMessage = (value: unknown): value is SessionMessage =>
  typeof value === 'object' && value !== null && typeof (value as SessionMessage).text === 'string'

/** Whether two texts are the same but for halves of characters, which the binary can't hold. */
export const isSame = (one: string, other: string): boolean => wellFormed(one) === wellFormed(other)
const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, '\ufffd')

/** Hands the conversation to the binary and returns what it made of it. */
export async function fold($: EngineInterface, e: SessionCompactInput, settings: Settings): Promise<Folded> {
  const shared = await $.ctxfold.settings('ctxfold-compact')
  const run = await $.ctxfold.run({
    args: ['mod', 'compact'],
    env: await $.process.hookEnv(),
    input: JSON.stringify({
      v: 1,
      trigger: e.trigger,
      instructions: e.instructions,
      options: {
        mode: settings.mode,
        keepRecent: settings.keepRecent,
        model: shared.model,
        thinking: shared.thinking,
        tier: shared.tier,
      },
      messages: e.messages,
    }),
  })
  if (run.exitCode !== 0) throw new Declined(lastLine(run.stderr) || `exit ${run.exitCode}`)
  const reply = JSON.parse(run.stdout) as Reply
  if (typeof reply.skip === 'string') throw new Declined(reply.skip)
  if (!Array.isArray(reply.messages) || reply.messages.length === 0 || !reply.messages.every(isMessage)) {
    throw new Declined('the answer holds no messages')
  }
  return { messages: safe(reply.messages), note: typeof reply.note === 'string' ? reply.note : 'done' }
}

/** The binary's error, without what it advises people at a terminal. */
const lastLine = (text: string): string => {
  const lines = text.split('\n').filter(line => /^\S/.test(line) && !line.startsWith('hint:'))
  return lines.at(-1)?.replace(/^ctxfold: /, '').slice(0, 300) ?? ''
}

export const why = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 300)

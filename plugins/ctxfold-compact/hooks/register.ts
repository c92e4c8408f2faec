import type { EngineInterface, Register } from 'claude-code'
import { Declined, fold, isSame, why } from './fold'
import { type Answered, type Armed, arm, disarm, isIdle } from './idle'
import { load, save } from './saved'
import { answer, readSaved, type Settings, settingsOf } from './settings'

/** Whether a person is at the prompt. Elsewhere a compaction of ours would add an answer of its own. */
let isInteractive = false
/** Set from the compaction that the threshold started until the fill was under it again. */
let isOver = false
/** Set while the engine's own threshold is lowered for one turn. */
let armed: Armed | undefined
/** The main conversation's last request that reached the model; unset before the first. */
let answered: Answered | undefined
/** Whether the turn that runs has sent a request. */
let isSent = false

type Options = Readonly<Record<string, unknown>>

async function settings($: EngineInterface, options: Options): Promise<Settings> {
  return settingsOf(options, readSaved(await load($)))
}

async function restore($: EngineInterface): Promise<void> {
  const was = armed
  armed = undefined
  if (was !== undefined) await disarm($, was)
}

export const register: Register = (on, options) => {
  on('session.start', async ($, e, next) => {
    const started = await next(e)
    isInteractive = e.isInteractive
    await $.command.register({
      name: 'ctxfold',
      description: 'Compaction by ctxfold: on, off, mode and threshold',
      argumentHint: '[status | on | off | mode summary|prune|mask | at PERCENT|off | idle … | reset]',
    })
    return started
  })

  on('command.run', { command: 'ctxfold' }, async ($, e) => {
    const reply = answer(e.args, options, readSaved(await load($)))
    if (reply.save !== undefined) {
      try {
        await save($, reply.save)
      } catch (error) {
        return { text: `ctxfold: nothing was changed: ${why(error)}` }
      }
      if (!settingsOf(options, reply.save).enabled) $.ui.status(undefined)
    }
    return { text: reply.text }
  })

  on('session.compact', async ($, e, next) => {
    const isPause = armed !== undefined && e.trigger === 'auto' && e.agentId === undefined
    await restore($)
    if (e.agentId !== undefined) return next(e)
    const now = await settings($, options)
    if (!now.enabled && !isPause) {
      if (e.trigger !== 'precompute') $.ui.log('ctxfold: off, so this is the client\'s own summary; /ctxfold on')
      return next(e)
    }
    if (e.trigger === 'precompute') return { skip: 'ctxfold compacts when the compaction comes' }
    try {
      const folded = await fold($, e, isPause ? { ...now, mode: now.enabled ? now.mode : 'mask' } : now)
      // In an automatic compaction the list may end in the prompt just typed: it must come back.
      const last = e.messages.at(-1)
      const end = folded.messages.at(-1)
      const isPrompt = last?.role === 'user' && last.toolResults === undefined
      if (isPrompt && (end?.role !== 'user' || !isSame(end.text, last.text))) {
        throw new Declined('the newest prompt would be lost')
      }
      $.ui.log(`ctxfold: ${folded.note}`)
      $.ui.toast(`ctxfold: ${folded.note}`)
      return { messages: folded.messages }
    } catch (error) {
      if (isPause) return { skip: `ctxfold: ${why(error)}` }
      $.ui.log(`ctxfold: the client's own summary instead: ${why(error)}`)
      return next(e)
    }
  }).catch(($, e, next) => next(e))

  on('prompt.submit', async ($, e, next) => {
    if (e.command !== undefined || e.turnId !== undefined || armed !== undefined) return next(e)
    const { idle } = await settings($, options)
    if (idle.enabled && (await isIdle($, idle, answered))) armed = await arm($)
    return next(e)
  }).catch(($, e, next) => next(e))

  on('turn.step', async function* ($, e, next) {
    if (e.agentId === undefined) {
      await restore($)
      isSent = true
    }
    return yield* next(e)
  })

  on('turn.complete', async ($, e, next) => {
    const done = await next(e)
    if (e.agentId !== undefined) return done
    await restore($)
    // A turn that was cut after its request may have warmed the cache. One that failed has not, and
    // what was answered before stands in the session's file.
    const isWarm = e.reason === 'aborted' ? isSent : e.reason !== 'error'
    if (isWarm) {
      answered = { session: (await $.process.hookEnv()).CLAUDE_CODE_SESSION_ID, at: await $.clock.now() }
    }
    isSent = false
    const now = await settings($, options)
    const { context } = await $.session.usage()
    const percent = context.percent ?? 0
    if (now.enabled) $.ui.status(`ctxfold ${now.mode} · ${Math.round(percent)}%`)
    if (now.threshold === 0 || percent < now.threshold) isOver = false
    else if (now.enabled && isInteractive && !isOver && e.reason === 'answer') {
      isOver = true
      // Queued, not awaited: it runs once the session is idle, and only there may a plugin's own
      // hook answer a compaction that the plugin started.
      void $.command.run({ command: 'compact' }).catch(() => undefined)
    }
    return done
  })
}

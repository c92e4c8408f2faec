import type { EngineInterface, Register } from 'claude-code'
import type { Ctxfold, CtxfoldSettings } from '../types'
import { answer, type Saved, SAVED, inForce, keyOf, readSaved } from './settings'

export const register: Register = (on, options) => {
  const key = keyOf(options)

  on('engine.create', async ($, e, next) => {
    const beneath = await next(e)
    const root = beneath.plugin.root
    const ctxfold: Ctxfold = {
      run: async ({ args, input, env }) => {
        const child = beneath.process.spawn({
          argv: [`${root}/bin/ctxfold`, ...args],
          env: { ...env, ...(key === '' ? {} : { CTXFOLD_GEMINI_API_KEY: key }) },
          ...(input === undefined ? {} : { input }),
        })
        let stdout = ''
        let stderr = ''
        // Pulled by hand: the loop's end is the child's, and its return value says how it ended.
        for (;;) {
          const step = await child.next()
          if (step.done === true) {
            const { code, signal } = step.value
            return code === null
              ? { exitCode: 255, stdout, stderr: `${stderr}\nthe binary was killed (${signal ?? 'no signal'})` }
              : { exitCode: code, stdout, stderr }
          }
          if (step.value.stream === 'stdout') stdout += step.value.text
          else stderr += step.value.text
        }
      },
      settings: async (plugin): Promise<CtxfoldSettings> =>
        inForce(plugin, options, readSaved(await beneath.store.get(SAVED))),
    }
    return { ...beneath, ctxfold }
  })

  on('session.start', async ($, e, next) => {
    const started = await next(e)
    await $.command.register({
      name: 'ctxfold-core',
      description: 'Settings that all ctxfold plugins share',
      argumentHint: '[status | free | paid | models | model [PLUGIN] ID | thinking [PLUGIN] LEVEL | reset]',
    })
    return started
  })

  on('command.run', { command: 'ctxfold-core' }, async ($, e) => {
    const saved = readSaved(await $.store.get(SAVED))
    const reply = answer(e.args, options, saved)
    if (reply.save !== undefined) await $.store.set(SAVED, reply.save satisfies Saved)
    if (reply.reset === true) await $.store.delete(SAVED)
    if (reply.models === true) return { text: await models($, key) }
    return { text: reply.text }
  })
}

async function models($: EngineInterface, key: string): Promise<string> {
  if (key === '') return 'ctxfold: no Gemini API key; set it in the plugin\'s configuration (/plugin)'
  const run = await $.process.run([`${$.plugin.root}/bin/ctxfold`, 'models'], {
    env: { CTXFOLD_GEMINI_API_KEY: key },
    timeoutMs: 60_000,
  })
  return run.exitCode === 0 ? run.stdout.trim() : run.stderr.trim()
}

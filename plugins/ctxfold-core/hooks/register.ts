import type { EngineInterface, Register } from 'claude-code'
import type { Ctxfold, CtxfoldSettings } from '../types'
import { load, parse, placeIn, save } from './saved'
import { answer, inForce, keyOf, readSaved } from './settings'

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
      // Spelled out: what lies beneath may not be handed to a helper.
      settings: async (plugin): Promise<CtxfoldSettings> => {
        let text = ''
        try {
          text = await beneath.fs.read(placeIn(await beneath.process.hookEnv()))
        } catch {
          // Nothing was saved.
        }
        return inForce(plugin, options, readSaved(parse(text)))
      },
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
    const reply = answer(e.args, options, readSaved(await load($)))
    try {
      if (reply.save !== undefined) await save($, reply.save)
      return { text: reply.models === true ? await models($, key) : reply.text }
    } catch (error) {
      return { text: `ctxfold: that did not work: ${why(error)}` }
    }
  })
}

const why = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 300)

async function models($: EngineInterface, key: string): Promise<string> {
  if (key === '') return 'ctxfold: no Gemini API key; set it in the plugin\'s configuration (/plugin)'
  const run = await $.ctxfold.run({ args: ['models'] })
  return run.exitCode === 0 ? run.stdout.trim() : run.stderr.trim()
}

import type { CtxfoldSettings } from '../types'

/** What /ctxfold-core changed; everything else is the plugin's configuration. */
export type Saved = {
  tier?: string
  model?: Record<string, string>
  thinking?: Record<string, string>
}

type Options = Readonly<Record<string, unknown>>

/** The name under which a setting holds for every plugin. */
const ALL = '*'
const LEVELS = ['default', 'minimal', 'low', 'medium', 'high']

const text = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && value !== '' ? value : otherwise

const names = (value: unknown): Record<string, string> => {
  const out: Record<string, string> = {}
  if (typeof value !== 'object' || value === null) return out
  for (const [name, entry] of Object.entries(value)) if (typeof entry === 'string') out[name] = entry
  return out
}

export const keyOf = (options: Options): string => text(options.apiKey, '')

/** Reads what was saved, leaving out what has another type. */
export function readSaved(value: unknown): Saved {
  if (typeof value !== 'object' || value === null) return {}
  const { tier, model, thinking } = value as Record<string, unknown>
  return {
    ...(typeof tier === 'string' ? { tier } : {}),
    model: names(model),
    thinking: names(thinking),
  }
}

export function inForce(plugin: string, options: Options, saved: Saved): CtxfoldSettings {
  const pick = (of: Record<string, string> | undefined, otherwise: string): string =>
    of?.[plugin] ?? of?.[ALL] ?? otherwise
  return {
    model: pick(saved.model, text(options.model, 'gemini-3.5-flash-lite')),
    thinking: pick(saved.thinking, text(options.thinking, 'default')),
    tier: saved.tier ?? text(options.tier, 'free'),
    hasKey: keyOf(options) !== '',
  }
}

export type Answer = { text: string; save?: Saved; models?: true }

/** What a line after /ctxfold-core does. Pure: the hook carries it out. */
export function answer(args: string, options: Options, saved: Saved): Answer {
  const [verb = 'status', ...rest] = args.trim().split(/\s+/).filter(word => word !== '')
  switch (verb) {
    case 'status':
      return { text: status(options, saved) }
    case 'free':
    case 'paid': {
      const save = { ...saved, tier: verb }
      return { text: status(options, save), save }
    }
    case 'models':
      return { text: '', models: true }
    case 'model':
    case 'thinking': {
      const [plugin, value] = rest.length > 1 ? rest : [ALL, rest[0]]
      if (plugin === undefined || value === undefined) return { text: `ctxfold: usage: /ctxfold-core ${verb} [PLUGIN] VALUE` }
      if (verb === 'thinking' && !LEVELS.includes(value)) {
        return { text: `ctxfold: unknown thinking level ${value}; one of ${LEVELS.join(', ')}` }
      }
      const save = { ...saved, [verb]: { ...saved[verb], [plugin]: value } }
      return { text: status(options, save), save }
    }
    case 'reset':
      return { text: status(options, {}), save: {} }
    default:
      return { text: `ctxfold: unknown word ${verb}; one of status, free, paid, models, model, thinking, reset` }
  }
}

function status(options: Options, saved: Saved): string {
  const shared = inForce(ALL, options, saved)
  const own = new Set([...Object.keys(saved.model ?? {}), ...Object.keys(saved.thinking ?? {})])
  own.delete(ALL)
  const lines = [
    `key       ${shared.hasKey ? 'set' : 'none: nothing is sent to a model'}`,
    `tier      ${shared.tier}${shared.tier === 'free' ? ' (the provider may read and train on what is sent)' : ''}`,
    `model     ${shared.model}`,
    `thinking  ${shared.thinking}`,
  ]
  for (const plugin of [...own].sort()) {
    const of = inForce(plugin, options, saved)
    lines.push(`${plugin}: model ${of.model}, thinking ${of.thinking}`)
  }
  return lines.join('\n')
}

export const MODES = ['summary', 'prune', 'mask'] as const
export type Mode = (typeof MODES)[number]

/** What holds now: the plugin's configuration with what /ctxfold changed over it. */
export type Settings = {
  enabled: boolean
  mode: Mode
  keepRecent: number
  /** Percent of the window; 0 for never. */
  threshold: number
  idle: Idle
}

export type Idle = {
  enabled: boolean
  /** Minutes without an answer after which a conversation counts as idle. */
  afterMinutes: number
  /** Tokens below which an idle conversation is left alone. */
  minTokens: number
}

/** What /ctxfold changed, and nothing else: everything else is the plugin's configuration. */
export type Saved = Partial<Omit<Settings, 'idle'>> & { idle?: Partial<Idle> }

type Options = Readonly<Record<string, unknown>>

const isMode = (value: unknown): value is Mode => MODES.some(mode => mode === value)
const isShare = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= 100
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean'
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0
const isMinutes = (value: unknown): value is number => isCount(value) && value > 0

/** Idle compaction is off until it is switched on; 15 minutes, and 16k tokens (about 64 KB). */
const IDLE: Idle = { enabled: false, afterMinutes: 15, minTokens: 16_000 }
const DEFAULTS: Omit<Settings, 'idle'> = { enabled: false, mode: 'summary', keepRecent: 6, threshold: 60 }

const record = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

/** Takes what is of the right type; the rest does not count. */
function fitting(value: unknown): Partial<Omit<Settings, 'idle'>> {
  const { enabled, mode, keepRecent, threshold } = record(value)
  return {
    ...(isFlag(enabled) ? { enabled } : {}),
    ...(isMode(mode) ? { mode } : {}),
    ...(isCount(keepRecent) ? { keepRecent } : {}),
    ...(isShare(threshold) ? { threshold } : {}),
  }
}

/** Reads what was saved. */
export function readSaved(value: unknown): Saved {
  const { enabled, afterMinutes, minTokens } = record(record(value).idle)
  return {
    ...fitting(value),
    idle: {
      ...(isFlag(enabled) ? { enabled } : {}),
      ...(isMinutes(afterMinutes) ? { afterMinutes } : {}),
      ...(isCount(minTokens) ? { minTokens } : {}),
    },
  }
}

/** Lays what was saved over the plugin's configuration. */
export function settingsOf(options: Options, saved: Saved): Settings {
  return { ...DEFAULTS, ...fitting(options), ...saved, idle: { ...IDLE, ...saved.idle } }
}

export type Answer = { text: string; save?: Saved }

/** What a line after /ctxfold does. Pure: the hook carries it out. */
export function answer(args: string, options: Options, saved: Saved): Answer {
  const words = args.trim().split(/\s+/).filter(word => word !== '')
  const [verb = 'status', value, third] = words
  const set = (change: Saved): Answer => {
    const save = { ...saved, ...change, idle: { ...saved.idle, ...change.idle } }
    return { text: status(settingsOf(options, save)), save }
  }
  switch (verb) {
    case 'status':
      return { text: status(settingsOf(options, saved)) }
    case 'on':
      return set({ enabled: true })
    case 'off':
      return set({ enabled: false })
    case 'mode':
      return isMode(value) ? set({ mode: value }) : { text: `ctxfold: mode is one of ${MODES.join(', ')}` }
    case 'at': {
      if (value === 'off') return set({ threshold: 0 })
      const percent = Number(value?.replace(/%$/, ''))
      if (!isShare(percent) || percent < 1) return { text: 'ctxfold: at takes a percentage from 1 to 100, or off' }
      return set({ threshold: percent })
    }
    case 'idle':
      return idle(set, value, third)
    case 'reset':
      return { text: 'ctxfold: settings of the plugin\'s configuration hold again', save: {} }
    default:
      return { text: `ctxfold: unknown word ${verb}; one of on, off, mode, at, idle, reset, status` }
  }
}

function idle(set: (change: Saved) => Answer, verb?: string, value = ''): Answer {
  // Number reads more than digits: 1.5 and 1e400 as well.
  const amount = /^\d+$/.test(value) ? Number(value) : undefined
  switch (verb) {
    case 'on':
    case 'off':
      return set({ idle: { enabled: verb === 'on' } })
    case 'after':
      return isMinutes(amount)
        ? set({ idle: { afterMinutes: amount } })
        : { text: 'ctxfold: idle after takes whole minutes, 1 or more' }
    case 'min':
      return isCount(amount)
        ? set({ idle: { minTokens: amount } })
        : { text: 'ctxfold: idle min takes a whole number of tokens' }
    default:
      return { text: 'ctxfold: idle is followed by on, off, after MINUTES or min TOKENS' }
  }
}

export function status(now: Settings): string {
  const at = now.threshold === 0 ? 'never by itself' : `at ${now.threshold}% of the window`
  const pause = now.idle.enabled
    ? `after ${now.idle.afterMinutes} min from ${now.idle.minTokens} tokens`
    : 'off'
  return [
    `ctxfold is ${now.enabled ? 'on' : 'off'}`,
    `mode       ${now.mode}`,
    `keep       ${now.keepRecent} newest messages`,
    `compacts   ${at}`,
    `idle       ${pause}`,
  ].join('\n')
}

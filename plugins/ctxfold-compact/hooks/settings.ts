/** The key in the plugin's store. */
export const SAVED = 'settings'

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

export type Saved = Partial<Settings>

type Options = Readonly<Record<string, unknown>>

const isMode = (value: unknown): value is Mode => MODES.some(mode => mode === value)
const isShare = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= 100

/** Idle compaction is off until it is switched on; 15 minutes, and 16k tokens (about 64 KB). */
const IDLE: Idle = { enabled: false, afterMinutes: 15, minTokens: 16_000 }

function idleOf(value: unknown): Idle {
  if (typeof value !== 'object' || value === null) return IDLE
  const { enabled, afterMinutes, minTokens } = value as Record<string, unknown>
  return {
    enabled: typeof enabled === 'boolean' ? enabled : IDLE.enabled,
    afterMinutes: typeof afterMinutes === 'number' && afterMinutes > 0 ? afterMinutes : IDLE.afterMinutes,
    minTokens: typeof minTokens === 'number' && minTokens >= 0 ? minTokens : IDLE.minTokens,
  }
}

/** Lays what the store holds over the options; a value of another type does not count. */
export function settingsOf(options: Options, stored: unknown): Settings {
  const saved = typeof stored === 'object' && stored !== null ? (stored as Record<string, unknown>) : {}
  const first = (name: string, fits: (value: unknown) => boolean, otherwise: unknown): unknown =>
    [saved[name], options[name]].find(fits) ?? otherwise
  return {
    enabled: first('enabled', v => typeof v === 'boolean', false) as boolean,
    mode: first('mode', isMode, 'summary') as Mode,
    keepRecent: first('keepRecent', v => Number.isInteger(v) && Number(v) >= 0, 6) as number,
    threshold: first('threshold', isShare, 60) as number,
    idle: idleOf(saved.idle),
  }
}

export type Answer = { text: string; save?: Saved; reset?: true }

/** What a line after /ctxfold does. Pure: the hook carries it out. */
export function answer(args: string, now: Settings): Answer {
  const words = args.trim().split(/\s+/).filter(word => word !== '')
  const [verb = 'status', value, third] = words
  const set = (change: Saved): Answer => {
    const next = { ...now, ...change }
    return { text: status(next), save: next }
  }
  switch (verb) {
    case 'status':
      return { text: status(now) }
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
      return idle(now, set, value, third)
    case 'reset':
      return { text: 'ctxfold: settings of the plugin\'s configuration hold again', reset: true }
    default:
      return { text: `ctxfold: unknown word ${verb}; one of on, off, mode, at, idle, reset, status` }
  }
}

function idle(now: Settings, set: (change: Saved) => Answer, verb?: string, value?: string): Answer {
  const amount = Number(value)
  switch (verb) {
    case 'on':
    case 'off':
      return set({ idle: { ...now.idle, enabled: verb === 'on' } })
    case 'after':
      if (!(amount > 0)) return { text: 'ctxfold: idle after takes minutes' }
      return set({ idle: { ...now.idle, afterMinutes: amount } })
    case 'min':
      if (!(amount >= 0)) return { text: 'ctxfold: idle min takes tokens' }
      return set({ idle: { ...now.idle, minTokens: amount } })
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

const CELLS = 10

/** Tokens for people: 950, 31k, 1.2M. */
const short = (tokens: number): string => {
  if (tokens < 1000) return String(tokens)
  return tokens < 1_000_000 ? `${Math.round(tokens / 1000)}k` : `${(tokens / 1_000_000).toFixed(1)}M`
}

export type Context = { tokens?: number | null; window?: number | null; percent?: number | null }

/** The status line: a bar, the percentage and the tokens; nothing before the first answer. */
export function fillLine({ tokens, window, percent }: Context): string | undefined {
  if (typeof tokens !== 'number' || typeof window !== 'number' || window <= 0) return undefined
  const used = Math.min(100, Math.max(0, percent ?? (100 * tokens) / window))
  const full = Math.floor((used / 100) * CELLS)
  return `${'█'.repeat(full)}${'░'.repeat(CELLS - full)} ${Math.round(used)}% · ${short(tokens)} of ${short(window)}`
}

/** What a plugin asks of the ctxfold binary. */
export type CtxfoldRequest = {
  /** Arguments after the binary's name, for example `['mod', 'compact']`. */
  args: readonly string[]
  /** Text for standard input. */
  input?: string
  /** Variables over the session's own, for example the session's id. */
  env?: Record<string, string>
}

/** How the binary answered. Never cut, whatever its size. */
export type CtxfoldReply = { exitCode: number; stdout: string; stderr: string }

/** What holds for one plugin: its own setting, else the shared one. */
export type CtxfoldSettings = {
  model: string
  thinking: string
  tier: string
  hasKey: boolean
}

export type Ctxfold = {
  /** Runs the binary that this plugin ships; the key goes in by its environment only. */
  run: (request: CtxfoldRequest) => Promise<CtxfoldReply>
  /** The settings in force for the plugin of this name. */
  settings: (plugin: string) => Promise<CtxfoldSettings>
}

declare module 'claude-code' {
  interface EngineInterface {
    ctxfold: Ctxfold
  }
}

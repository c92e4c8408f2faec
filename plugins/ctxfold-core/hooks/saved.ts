import type { CoreEngineInterface } from 'claude-code'

type Engine = Pick<CoreEngineInterface, 'fs' | 'process'>

/**
 * What is saved lies in the folder that the client keeps for the plugin's data and deletes with the
 * plugin. The plugin's store would outlive it, and be there again for what is installed anew.
 */
export function placeIn({ CLAUDE_PLUGIN_DATA: folder }: Record<string, string>): string {
  if (folder === undefined || folder === '') throw new Error('the client names no folder for it')
  return `${folder}/settings.json`
}

/** What was saved; nothing where the text is none of ours. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export async function load($: Engine): Promise<unknown> {
  try {
    return parse(await $.fs.read(placeIn(await $.process.hookEnv())))
  } catch {
    return undefined
  }
}

export async function save($: Engine, saved: unknown): Promise<void> {
  await $.fs.write(placeIn(await $.process.hookEnv()), `${JSON.stringify(saved)}\n`)
}

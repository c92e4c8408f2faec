import type { CoreEngineInterface } from 'claude-code'

type Engine = Pick<CoreEngineInterface, 'fs' | 'process'>

/**
 * What is saved lies in the folder that the client keeps for the plugin's data and deletes with the
 * plugin. The plugin's store would outlive it, and switch on what is installed anew.
 */
async function file($: Engine): Promise<string> {
  const { CLAUDE_PLUGIN_DATA: folder } = await $.process.hookEnv()
  if (folder === undefined || folder === '') throw new Error('the client names no folder for it')
  return `${folder}/settings.json`
}

/** What was saved; nothing where there is no file, or one that can't be read. */
export async function load($: Engine): Promise<unknown> {
  try {
    return JSON.parse(await $.fs.read(await file($)))
  } catch {
    return undefined
  }
}

export async function save($: Engine, saved: unknown): Promise<void> {
  await $.fs.write(await file($), `${JSON.stringify(saved)}\n`)
}

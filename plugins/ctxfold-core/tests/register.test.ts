import { describe, expect, test } from 'claude-code/testing'
import type { On } from 'claude-code'
import type { Ctxfold } from '../types'
import { register } from '../hooks/register'

type Ended = { code: number | null; signal: string | null }
type Piece = { stream: 'stdout' | 'stderr'; text: string }

/** What the plugin adds to the engine, over a child that prints these pieces. */
async function added(options: Record<string, unknown>, pieces: Piece[], ended: Ended) {
  const started: any[] = []
  const hooks: Record<string, any> = {}
  const on = (name: string, ...rest: any[]) => {
    hooks[name] = rest.at(-1)
  }
  register(on as never, options as never)
  async function* child() {
    yield* pieces
    return ended
  }
  const beneath = {
    plugin: { root: '/home/dev/a plugin' },
    fs: { read: async () => JSON.stringify({ tier: 'paid', model: { 'ctxfold-compact': 'own' } }) },
    process: {
      hookEnv: async () => ({ CLAUDE_PLUGIN_DATA: '/home/dev/data' }),
      spawn: (request: unknown) => {
        started.push(request)
        return child()
      },
    },
  }
  const made = await hooks['engine.create'](undefined, {}, async () => beneath)
  return { ctxfold: made.ctxfold as Ctxfold, started }
}

describe('$.ctxfold', () => {
  test('runs the binary of this plugin, the key in its environment only', async () => {
    const { ctxfold, started } = await added({ apiKey: 'SECRET' }, [{ stream: 'stdout', text: '{}' }], { code: 0, signal: null })
    const reply = await ctxfold.run({ args: ['mod', 'compact'], input: 'in', env: { A: 'b' } })
    expect(reply).toEqual({ exitCode: 0, stdout: '{}', stderr: '' })
    expect(started).toEqual([
      {
        argv: ['/home/dev/a plugin/bin/ctxfold', 'mod', 'compact'],
        env: { A: 'b', CTXFOLD_GEMINI_API_KEY: 'SECRET' },
        input: 'in',
      },
    ])
  })
  test('leaves the key out where there is none', async () => {
    const { ctxfold, started } = await added({ apiKey: '' }, [], { code: 0, signal: null })
    await ctxfold.run({ args: ['models'] })
    expect(started[0].env).toEqual({})
  })
  test('puts pieces of any size together', async () => {
    const piece = 'x'.repeat(1_000_000)
    const pieces: Piece[] = [...Array(6)].map(() => ({ stream: 'stdout', text: piece }))
    const { ctxfold } = await added({}, [...pieces, { stream: 'stderr', text: 'noise' }], { code: 3, signal: null })
    const reply = await ctxfold.run({ args: [] })
    expect(reply.stdout.length).toBe(6_000_000)
    expect(reply.stderr).toBe('noise')
    expect(reply.exitCode).toBe(3)
  })
  test('says that the binary was killed', async () => {
    const { ctxfold } = await added({}, [], { code: null, signal: 'SIGKILL' })
    const reply = await ctxfold.run({ args: [] })
    expect(reply.exitCode).toBe(255)
    expect(reply.stderr).toContain('killed (SIGKILL)')
  })
  test('answers the settings of a plugin', async () => {
    const { ctxfold } = await added({ apiKey: 'K', model: 'shared' }, [], { code: 0, signal: null })
    expect(await ctxfold.settings('ctxfold-compact')).toEqual({ model: 'own', thinking: 'default', tier: 'paid', hasKey: true })
    expect((await ctxfold.settings('other')).model).toBe('shared')
  })
})

/** A line after /ctxfold-core, as a person at a terminal types it. */
const line = (args: string) => ({
  command: 'ctxfold-core',
  args,
  origin: { kind: 'composer' } as const,
  presentation: { isFullscreen: false, columns: 80 },
})

/** The files of the plugin's data; nothing can be written where there is no folder for it. */
function disk(on: On, folder = '/home/dev/data') {
  const files = new Map<string, string>()
  on('process.hookEnv', () => ({ value: { CLAUDE_PLUGIN_DATA: folder } }))
  on('fs.read', (_, e) => {
    const text = files.get(e.path)
    if (text === undefined) throw new Error('ENOENT')
    return { value: text }
  })
  on('fs.write', (_, e) => {
    files.set(e.path, e.text)
    return { value: undefined }
  })
  return files
}

describe('/ctxfold-core', () => {
  test('keeps what it is told, and reset forgets it', { options: { apiKey: 'K' } }, async ($, on) => {
    const files = disk(on)
    const say = async (args: string) => (await $.command.run(line(args))).text
    expect(await say('')).toContain('tier      free')
    await say('paid')
    await say('model ctxfold-compact gemini-y')
    expect(await say('status')).toContain('tier      paid')
    expect(await say('status')).toContain('ctxfold-compact: model gemini-y')
    await say('reset')
    expect(await say('status')).toContain('tier      free')
    expect([...files]).toEqual([['/home/dev/data/settings.json', '{}\n']])
  })
  test('says that nothing was saved where nothing can be', async ($, on) => {
    disk(on, '')
    expect((await $.command.run(line('paid'))).text).toContain('did not work')
  })
  test('asks the binary for the models, with the key', { options: { apiKey: 'K' } }, async ($, on) => {
    disk(on)
    let env: Record<string, string> | undefined
    on('process.spawn', async function* (_, e) {
      env = e.env
      yield { stream: 'stdout' as const, text: 'gemini-x\n' }
      return { value: { code: 0, signal: null } }
    })
    expect((await $.command.run(line('models'))).text).toBe('gemini-x')
    expect(env).toEqual({ CTXFOLD_GEMINI_API_KEY: 'K' })
  })
  test('says in one line that there is no binary', { options: { apiKey: 'K' } }, async ($, on) => {
    disk(on)
    on('process.spawn', async function* () {
      return { deny: 'spawn ENOENT' }
    })
    const { text } = await $.command.run(line('models'))
    expect(text).toContain('ENOENT')
    expect(text).toContain('ctxfold: ')
    expect(text?.includes('\n')).toBe(false)
  })
  test('says that there is no key', async ($, on) => {
    disk(on)
    expect((await $.command.run(line('models'))).text).toContain('no Gemini API key')
  })
})

import { describe, expect, mock, test } from 'claude-code/testing'
import type { On, SessionMessage } from 'claude-code'

const MESSAGES: SessionMessage[] = [
  { role: 'user', text: 'go', toolUses: [], handle: 'h0' },
  { role: 'assistant', text: 'ok', toolUses: [{ tool_use_id: 't', tool: 'Bash', input: {} }], handle: 'h1' },
  { role: 'user', text: '', toolUses: [], toolResults: [{ tool_use_id: 't', text: 'out', isError: false }], handle: 'h2' },
  { role: 'assistant', text: 'done', toolUses: [], handle: 'h3' },
]
const FOLDED: SessionMessage[] = [{ role: 'user', text: 'SUMMARY', toolUses: [] }, ...MESSAGES]

type Request = { args: readonly string[]; input?: string; env?: Record<string, string> }
type Reply = { exitCode: number; stdout: string; stderr: string }

/** The binary, the engine and everything beneath the plugin; what happened is written down. */
function world(on: On, binary: (request: Request) => Reply | Promise<Reply>, percent = 10) {
  const seen = {
    requests: [] as Request[],
    lines: [] as string[],
    toasts: [] as string[],
    statuses: [] as string[],
    commands: [] as string[],
    /** How often the engine's own summary ran. */
    own: 0,
    percent,
    env: new Map<string, string | undefined>([['CLAUDE_AUTOCOMPACT_PCT_OVERRIDE', '77']]),
    session: 'sid',
    files: new Map<string, string>(),
    isFull: false,
    clock: mock.clock(on, { now: 1_000_000 }),
  }
  on('fs.read', (_, e) => {
    const text = seen.files.get(e.path)
    if (text === undefined) throw new Error('ENOENT')
    return { value: text }
  })
  on('fs.write', (_, e) => {
    if (seen.isFull) throw new Error('ENOSPC')
    seen.files.set(e.path, e.text)
    return { value: undefined }
  })
  on('engine.create', async (_, e, next) => ({
    ...(await next(e)),
    ctxfold: {
      settings: async () => ({ model: 'gemini-x', thinking: 'low', tier: 'paid', hasKey: true }),
      run: async (request: Request) => {
        seen.requests.push(request)
        return binary(request)
      },
    },
  }))
  on('process.hookEnv', () => ({ value: { CLAUDE_CODE_SESSION_ID: seen.session, CLAUDE_PLUGIN_DATA: '/home/dev/data' } }))
  on('env.get', (_, e) => ({ value: seen.env.get(e.name) }))
  on('env.set', (_, e) => {
    seen.env.set(e.name, e.value)
    return { value: {} }
  })
  on('ui.log', (_, e) => {
    seen.lines.push(e.text)
    return { value: undefined }
  })
  on('ui.toast', (_, e) => {
    seen.toasts.push(e.text)
    return { value: undefined }
  })
  on('ui.status', (_, e) => {
    seen.statuses.push(e.text ?? '')
    return { value: undefined }
  })
  on('session.usage', () => ({
    value: { startedAt: 0, context: { tokens: seen.percent * 2000, window: 200_000, percent: seen.percent }, rateLimits: [] },
  }))
  on('session.compact', () => {
    seen.own += 1
    return { messages: [{ role: 'user', text: 'OWN', toolUses: [] }] }
  })
  on('session.start', () => ({ cwd: '/home/dev' }))
  on('command.register', () => ({ value: { command: 'ctxfold' } }))
  on('command.run', (_, e) => {
    seen.commands.push(e.command)
    return { text: '' }
  })
  on('prompt.submit', (_, e) => ({ text: e.text }))
  on('turn.step', async function* (_, e) {
    return { turnId: e.turnId, index: e.index, answer: 'a', toolUses: [] } as never
  })
  on('turn.complete', () => ({ text: '' }))
  return seen
}

const answers = (reply: unknown) => (): Reply => ({ exitCode: 0, stdout: JSON.stringify(reply), stderr: '' })
const takes = answers({ v: 1, messages: FOLDED, note: 'summary: 9 to 5' })
const ON = { options: { enabled: true, threshold: 60 } }
const LOWERED = ['CLAUDE_AUTOCOMPACT_PCT_OVERRIDE', 'CLAUDE_CODE_AUTO_COMPACT_WINDOW'] as const

/** A line after /ctxfold, as a person at a terminal types it. */
const line = (args: string) => ({
  command: 'ctxfold',
  args,
  origin: { kind: 'composer' } as const,
  presentation: { isFullscreen: false, columns: 80 },
})

const typed = (text: string) => ({ text, wait: true, origin: { kind: 'composer' } as const })

describe('session.compact', () => {
  test('takes the binary\'s messages, and keeps handles on plain user rows only', ON, async ($, on) => {
    const seen = world(on, takes)
    const r = await $.session.compact({ trigger: 'manual', instructions: 'keep the plan', messages: MESSAGES })
    expect(r.messages?.map(m => m.text)).toEqual(['SUMMARY', 'go', 'ok', '', 'done'])
    expect(r.messages?.map(m => m.handle)).toEqual([undefined, 'h0', undefined, undefined, undefined])
    expect(seen.own).toBe(0)
    expect(seen.lines).toEqual(['ctxfold: summary: 9 to 5'])
    expect(seen.toasts).toEqual(['ctxfold: summary: 9 to 5'])
    const input = JSON.parse(seen.requests[0]?.input ?? '')
    expect(seen.requests[0]?.args).toEqual(['mod', 'compact'])
    expect(seen.requests[0]?.env).toEqual({ CLAUDE_CODE_SESSION_ID: 'sid', CLAUDE_PLUGIN_DATA: '/home/dev/data' })
    expect(input.v).toBe(1)
    expect(input.trigger).toBe('manual')
    expect(input.instructions).toBe('keep the plan')
    expect(input.options).toEqual({ mode: 'summary', keepRecent: 6, model: 'gemini-x', thinking: 'low', tier: 'paid' })
    expect(input.messages).toEqual(MESSAGES)
  })

  const failures: [string, (request: Request) => Reply, string][] = [
    ['an exit status', () => ({ exitCode: 4, stdout: '', stderr: 'noise\nctxfold: no key\n  hint: set one\n' }), 'no key'],
    ['an exit status without a word', () => ({ exitCode: 3, stdout: '', stderr: '' }), 'exit 3'],
    ['no JSON', () => ({ exitCode: 0, stdout: 'oops', stderr: '' }), 'JSON'],
    ['no messages', answers({ v: 1 }), 'no messages'],
    ['an empty list', answers({ v: 1, messages: [] }), 'no messages'],
    ['a row without text', answers({ v: 1, messages: [{ role: 'user' }] }), 'no messages'],
    ['a skip', answers({ v: 1, skip: 'not smaller' }), 'not smaller'],
    ['null', answers(null), 'null'],
    ['a program that can\'t be started', () => { throw new Error('spawn ENOENT') }, 'ENOENT'],
  ]
  for (const [name, binary, why] of failures) {
    test(`leaves it to the engine, with one line, after ${name}`, ON, async ($, on) => {
      const seen = world(on, binary)
      const r = await $.session.compact({ trigger: 'manual', messages: MESSAGES })
      expect(r.messages?.[0]?.text).toBe('OWN')
      expect(seen.own).toBe(1)
      expect(seen.lines).toHaveLength(1)
      expect(seen.lines[0]).toContain(why)
      expect(seen.toasts).toEqual([])
    })
  }

  test('is the engine\'s own while ctxfold is off, which it is at first', async ($, on) => {
    const seen = world(on, takes)
    await $.session.compact({ trigger: 'manual', messages: MESSAGES })
    expect(seen.own).toBe(1)
    expect(seen.requests).toEqual([])
    expect(seen.lines).toHaveLength(1)
    expect(seen.lines[0]).toContain('/ctxfold on')
  })

  test('leaves sub-agents alone', ON, async ($, on) => {
    const seen = world(on, takes)
    await $.session.compact({ trigger: 'auto', agentId: 'a1', messages: MESSAGES })
    expect(seen.own).toBe(1)
    expect(seen.requests).toEqual([])
    expect(seen.lines).toEqual([])
  })

  test('does nothing ahead of time', ON, async ($, on) => {
    const seen = world(on, takes)
    const r = await $.session.compact({ trigger: 'precompute', messages: MESSAGES })
    expect(r.skip).toContain('when the compaction comes')
    expect(seen.own).toBe(0)
    expect(seen.requests).toEqual([])
  })

  test('never loses the prompt that waits at the end', ON, async ($, on) => {
    const prompt: SessionMessage = { role: 'user', text: 'the new prompt', toolUses: [], handle: 'h4' }
    const seen = world(on, takes)
    const lost = await $.session.compact({ trigger: 'auto', messages: [...MESSAGES, prompt] })
    expect(lost.messages?.[0]?.text).toBe('OWN')
    expect(seen.lines[0]).toContain('prompt')
  })

  test('keeps the prompt that waits at the end, with its handle', ON, async ($, on) => {
    const prompt: SessionMessage = { role: 'user', text: 'the new prompt', toolUses: [], handle: 'h4' }
    world(on, answers({ v: 1, messages: [...FOLDED, prompt], note: 'fine' }))
    const kept = await $.session.compact({ trigger: 'auto', messages: [...MESSAGES, prompt] })
    expect(kept.messages?.at(-1)).toEqual(prompt)
  })

  test('knows the prompt again without half of a character', ON, async ($, on) => {
    const prompt = (text: string): SessionMessage => ({ role: 'user', text, toolUses: [], handle: 'h4' })
    const seen = world(on, answers({ v: 1, messages: [...FOLDED, prompt('half: \ufffd')], note: 'fine' }))
    const kept = await $.session.compact({ trigger: 'auto', messages: [...MESSAGES, prompt('half: \ud83d')] })
    expect(kept.messages?.at(-1)?.text).toBe('half: \ufffd')
    expect(seen.own).toBe(0)
  })

  test('says nothing while off about what is done ahead of time', async ($, on) => {
    const seen = world(on, takes)
    await $.session.compact({ trigger: 'precompute', messages: MESSAGES })
    expect(seen.own).toBe(1)
    expect(seen.lines).toEqual([])
  })
})

describe('the threshold', () => {
  const turn = { answer: 'a', durationMs: 1, isAborted: false, turnId: 't' }
  const start = (isInteractive: boolean) => ({ cwd: '/home/dev', surface: isInteractive ? ('terminal' as const) : null, isInteractive })

  test('starts one compaction, and another only after the fill was under it', ON, async ($, on) => {
    const seen = world(on, takes)
    await $.session.start(start(true))
    const fills = [59, 60, 75, 90, 20, 59, 61, 61]
    const started: number[] = []
    for (const fill of fills) {
      seen.percent = fill
      await $.turn.complete({ ...turn, reason: 'answer' })
      await seen.clock.advance(0)
      started.push(seen.commands.length)
    }
    expect(started).toEqual([0, 1, 1, 1, 1, 1, 2, 2])
    expect(seen.commands).toEqual(['compact', 'compact'])
    expect(seen.statuses.at(-1)).toBe('ctxfold summary · 61%')
  })

  for (const [name, change] of [
    ['a cut turn', { reason: 'aborted' as const }],
    ['a failed turn', { reason: 'error' as const }],
    ['a sub-agent\'s turn', { reason: 'answer' as const, agentId: 'a1' }],
  ] as const) {
    test(`starts nothing after ${name}`, ON, async ($, on) => {
      const seen = world(on, takes, 90)
        await $.session.start(start(true))
      await $.turn.complete({ ...turn, ...change })
      expect(seen.commands).toEqual([])
    })
  }

  test('starts nothing where nobody is at the prompt', ON, async ($, on) => {
    const seen = world(on, takes, 90)
    await $.session.start(start(false))
    await $.turn.complete({ ...turn, reason: 'answer' })
    expect(seen.commands).toEqual([])
  })

  for (const options of [{ enabled: false, threshold: 60 }, { enabled: true, threshold: 0 }]) {
    test(`starts nothing with ${JSON.stringify(options)}`, { options }, async ($, on) => {
      const seen = world(on, takes, 90)
        await $.session.start(start(true))
      await $.turn.complete({ ...turn, reason: 'answer' })
      expect(seen.commands).toEqual([])
    })
  }
})

describe('a pause', () => {
  const idle = (isIdle: boolean) => (request: Request): Reply =>
    request.args[1] === 'idle' ? answers({ idle: isIdle })() : takes()

  async function pause($: any) {
    await $.command.run(line('idle on'))
    await $.command.run(line('idle after 20'))
    await $.prompt.submit(typed('go on'))
  }

  test('lowers the engine\'s threshold for one turn and puts both values back', async ($, on) => {
    const seen = world(on, idle(true))
    await pause($)
    expect(LOWERED.map(name => seen.env.get(name))).toEqual(['1', '100000'])
    expect(seen.requests[0]?.args).toEqual(['mod', 'idle', '--after', '20'])
    const r = await $.session.compact({ trigger: 'auto', messages: MESSAGES })
    expect(r.messages?.[0]?.text).toBe('SUMMARY')
    expect(LOWERED.map(name => seen.env.get(name))).toEqual(['77', undefined])
    expect(JSON.parse(seen.requests[1]?.input ?? '').options.mode).toBe('mask')
  })

  test('puts both values back at the end of a turn that was not compacted', async ($, on) => {
    const seen = world(on, idle(true))
    await pause($)
    await $.turn.complete({ answer: 'a', durationMs: 1, isAborted: false, turnId: 't', reason: 'answer' })
    expect(LOWERED.map(name => seen.env.get(name))).toEqual(['77', undefined])
  })

  test('that the binary can\'t fold costs no summary of the engine\'s', async ($, on) => {
    const seen = world(on, request =>
      request.args[1] === 'idle' ? answers({ idle: true })() : { exitCode: 3, stdout: '', stderr: 'too small' },
    )
    await pause($)
    const r = await $.session.compact({ trigger: 'auto', messages: MESSAGES })
    expect(r.skip).toContain('too small')
    expect(seen.own).toBe(0)
  })

  const ended = (reason: 'answer' | 'refusal' | 'error' | 'aborted') =>
    ({ answer: 'a', durationMs: 1, isAborted: reason === 'aborted', turnId: 't', reason })
  const ASKED = ['mod', 'idle', '--after', '20']

  test('measured in memory is handed to the binary', async ($, on) => {
    const seen = world(on, idle(false))
    await $.turn.complete(ended('answer'))
    await seen.clock.advance(90_000)
    await pause($)
    expect(seen.requests[0]?.args).toEqual([...ASKED, '--idle-seconds', '90'])
    expect(LOWERED.map(name => seen.env.get(name))).toEqual(['77', undefined])
  })

  test('is not measured by turns that failed or were cut before their request', async ($, on) => {
    const seen = world(on, idle(false))
    await $.turn.complete(ended('answer'))
    await seen.clock.advance(60_000)
    await $.turn.complete(ended('error'))
    await $.turn.complete(ended('aborted'))
    await seen.clock.advance(30_000)
    await pause($)
    expect(seen.requests[0]?.args).toEqual([...ASKED, '--idle-seconds', '90'])
  })

  test('begins with a request that was cut', async ($, on) => {
    const seen = world(on, idle(false))
    for await (const _ of $.turn.step({ turnId: 't', index: 0, model: 'm', messageCount: 1 })) continue
    await $.turn.complete(ended('aborted'))
    await seen.clock.advance(5_000)
    await pause($)
    expect(seen.requests[0]?.args).toEqual([...ASKED, '--idle-seconds', '5'])
  })

  test('of one session says nothing of another in the same process', async ($, on) => {
    const seen = world(on, idle(false))
    await $.turn.complete(ended('answer'))
    seen.session = 'another'
    await pause($)
    expect(seen.requests[0]?.args).toEqual(ASKED)
    await $.turn.complete(ended('answer'))
    await $.prompt.submit(typed('go on'))
    expect(seen.requests[1]?.args).toEqual([...ASKED, '--idle-seconds', '0'])
  })

  test('of a small conversation, of a command or with idle off asks nobody', async ($, on) => {
    const seen = world(on, idle(true), 1)
    await $.prompt.submit(typed('first'))
    await pause($)
    seen.percent = 50
    await $.prompt.submit({ ...typed('/help'), command: { name: 'help', args: '' } })
    expect(seen.requests).toEqual([])
    expect(seen.env.get('CLAUDE_CODE_AUTO_COMPACT_WINDOW')).toBe(undefined)
  })
})

describe('/ctxfold', () => {
  test('is kept with the plugin\'s data, and reset goes back to the configuration', async ($, on) => {
    const seen = world(on, takes)
    const say = async (args: string) => (await $.command.run(line(args))).text
    expect(await say('')).toContain('ctxfold is off')
    await say('on')
    await say('mode prune')
    expect([...seen.files.keys()]).toEqual(['/home/dev/data/settings.json'])
    await $.session.compact({ trigger: 'manual', messages: MESSAGES })
    expect(JSON.parse(seen.requests[0]?.input ?? '').options.mode).toBe('prune')
    expect(await say('reset')).toContain('configuration')
    expect(await say('status')).toContain('ctxfold is off')
  })
  test('saves what was said and nothing of the configuration', { options: { mode: 'mask', threshold: 70 } }, async ($, on) => {
    const seen = world(on, takes)
    await $.command.run(line('on'))
    await $.command.run(line('idle min 5'))
    const saved = JSON.parse(seen.files.get('/home/dev/data/settings.json') ?? '')
    expect(saved).toEqual({ enabled: true, idle: { minTokens: 5 } })
  })
  test('takes its status line away when it is switched off', ON, async ($, on) => {
    const seen = world(on, takes)
    await $.turn.complete({ answer: 'a', durationMs: 1, isAborted: false, turnId: 't', reason: 'answer' })
    await $.command.run(line('mode mask'))
    expect(seen.statuses).toEqual(['ctxfold summary · 10%'])
    await $.command.run(line('off'))
    expect(seen.statuses.at(-1)).toBe('')
  })
  test('says that nothing was saved where nothing can be', async ($, on) => {
    const seen = world(on, takes)
    seen.isFull = true
    expect((await $.command.run(line('on'))).text).toContain('nothing was changed')
  })
  test('takes a file that is none for an empty one', async ($, on) => {
    const seen = world(on, takes)
    seen.files.set('/home/dev/data/settings.json', 'oops')
    expect((await $.command.run(line('on'))).text).toContain('ctxfold is on')
  })
})

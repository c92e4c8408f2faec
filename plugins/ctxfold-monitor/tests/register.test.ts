import { expect, test } from 'claude-code/testing'
import type { On } from 'claude-code'

const TURN = { answer: 'a', durationMs: 1, isAborted: false, turnId: 't', reason: 'answer' as const }

function statuses(on: On, context: { tokens: number; window: number; percent: number } | undefined) {
  const seen: string[] = []
  on('turn.complete', () => ({ text: '' }))
  on('session.usage', () => ({ value: { startedAt: 0, context: context ?? {} } as never }))
  on('ui.status', (_, e) => {
    seen.push(e.text ?? '')
    return { value: undefined }
  })
  return seen
}

test('the status line shows the fill after a turn', async ($, on) => {
  const seen = statuses(on, { tokens: 60_000, window: 200_000, percent: 30 })
  await $.turn.complete(TURN)
  expect(seen).toEqual(['███░░░░░░░ 30% · 60k of 200k'])
})

test('a sub-agent\'s turn changes nothing, nor does one without a reading', async ($, on) => {
  const seen = statuses(on, undefined)
  await $.turn.complete({ ...TURN, agentId: 'a1' })
  await $.turn.complete(TURN)
  expect(seen).toEqual([])
})

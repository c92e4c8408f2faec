import { describe, expect, test } from 'claude-code/testing'
import { fillLine } from '../hooks/fill'

describe('the fill line', () => {
  test('says nothing before the first answer', () => {
    expect(fillLine({})).toBe(undefined)
    expect(fillLine({ tokens: 10, window: 0 })).toBe(undefined)
  })
  test('draws a bar with percent and tokens', () => {
    expect(fillLine({ tokens: 700_000, window: 1_000_000, percent: 70 })).toBe('███████░░░ 70% · 700k of 1.0M')
  })
  test('stays in its ten cells', () => {
    expect(fillLine({ tokens: 300_000, window: 200_000, percent: 150 })).toBe('██████████ 100% · 300k of 200k')
  })
  test('works the percentage out where the host gives none', () => {
    expect(fillLine({ tokens: 500, window: 1000 })).toBe('█████░░░░░ 50% · 500 of 1k')
  })
})

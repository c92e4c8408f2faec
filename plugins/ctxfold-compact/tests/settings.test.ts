import { describe, expect, test } from 'claude-code/testing'
import { answer as answerTo, readSaved, settingsOf } from '../hooks/settings'

const answer = (line: string, saved = {}, options = {}) => answerTo(line, options, saved)

describe('/ctxfold', () => {
  test('is off after install, at 60 percent', () => {
    const fresh = settingsOf({}, {})
    expect(fresh.enabled).toBe(false)
    expect(fresh.threshold).toBe(60)
    expect(fresh.idle.enabled).toBe(false)
  })
  test('on, off, mode and at are saved', () => {
    expect(answer('on').save?.enabled).toBe(true)
    expect(answer('off').save?.enabled).toBe(false)
    expect(answer('mode mask').save?.mode).toBe('mask')
    expect(answer('at 40%').save?.threshold).toBe(40)
    expect(answer('at off').save?.threshold).toBe(0)
  })
  test('what does not fit changes nothing and says so', () => {
    const lines = [
      'mode fast', 'at 0', 'at 101', 'at x', 'idle', 'idle after 0', 'idle after', 'idle after 1.5', 'idle after 1e400',
      'idle after 99999999999999999', 'idle min -1', 'idle min 0x10', 'idle min', 'nonsense',
    ]
    for (const line of lines) {
      expect(answer(line).save).toBe(undefined)
      expect(answer(line).text).toContain('ctxfold: ')
    }
  })
  test('only what was said is saved, beside what was said before', () => {
    expect(answer('mode mask', { enabled: true }, { threshold: 70 }).save).toEqual({ enabled: true, mode: 'mask', idle: {} })
    expect(answer('idle on', { idle: { minTokens: 5 } }).save?.idle).toEqual({ enabled: true, minTokens: 5 })
    expect(answer('status', { enabled: true }, { threshold: 70, mode: 'prune' }).text).toContain('at 70%')
  })
  test('what was saved beats the configuration, and wrong types beat neither', () => {
    const mode = (options: {}, saved: unknown) => settingsOf(options, readSaved(saved)).mode
    expect(mode({ mode: 'prune' }, { mode: 'mask' })).toBe('mask')
    expect(mode({ mode: 'prune' }, { mode: 5 })).toBe('prune')
    expect(mode({}, undefined)).toBe('summary')
    expect(settingsOf({ keepRecent: 'six' }, {}).keepRecent).toBe(6)
    expect(settingsOf({}, readSaved({ idle: { afterMinutes: 1.5, minTokens: 7 } })).idle).toEqual({ enabled: false, afterMinutes: 15, minTokens: 7 })
  })
  test('idle has its own words', () => {
    expect(answer('idle on').save?.idle?.enabled).toBe(true)
    expect(answer('idle after 30').save?.idle?.afterMinutes).toBe(30)
    expect(answer('idle min 50000').save?.idle?.minTokens).toBe(50_000)
  })
  test('reset forgets all of it', () => {
    expect(answer('reset', { enabled: true }).save).toEqual({})
  })
})

import { describe, expect, test } from 'claude-code/testing'
import { answer, settingsOf } from '../hooks/settings'

describe('/ctxfold', () => {
  const fresh = settingsOf({}, undefined)
  test('is off after install, at 60 percent', () => {
    expect(fresh.enabled).toBe(false)
    expect(fresh.threshold).toBe(60)
    expect(fresh.idle.enabled).toBe(false)
  })
  test('on, off, mode and at are saved', () => {
    expect(answer('on', fresh).save?.enabled).toBe(true)
    expect(answer('off', fresh).save?.enabled).toBe(false)
    expect(answer('mode mask', fresh).save?.mode).toBe('mask')
    expect(answer('at 40%', fresh).save?.threshold).toBe(40)
    expect(answer('at off', fresh).save?.threshold).toBe(0)
  })
  test('what does not fit changes nothing', () => {
    for (const line of ['mode fast', 'at 0', 'at 101', 'at x', 'idle', 'idle after 0', 'idle min -1', 'nonsense']) {
      expect(answer(line, fresh).save).toBe(undefined)
    }
  })
  test('the store beats the configuration, and wrong types beat neither', () => {
    expect(settingsOf({ mode: 'prune' }, { mode: 'mask' }).mode).toBe('mask')
    expect(settingsOf({ mode: 'prune' }, { mode: 5 }).mode).toBe('prune')
    expect(settingsOf({ keepRecent: 'six' }, {}).keepRecent).toBe(6)
  })
  test('idle has its own words', () => {
    expect(answer('idle on', fresh).save?.idle?.enabled).toBe(true)
    expect(answer('idle after 30', fresh).save?.idle?.afterMinutes).toBe(30)
    expect(answer('idle min 50000', fresh).save?.idle?.minTokens).toBe(50_000)
  })
})

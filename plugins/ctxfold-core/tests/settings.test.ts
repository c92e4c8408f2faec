import { describe, expect, test } from 'claude-code/testing'
import { answer, inForce, readSaved } from '../hooks/settings'

const OPTIONS = { apiKey: 'K', tier: 'free', model: 'gemini-x', thinking: 'default' }

describe('settings', () => {
  test('a plugin\'s own value beats the shared one, which beats the configuration', () => {
    const saved = readSaved({ model: { '*': 'shared', 'ctxfold-compact': 'own' } })
    expect(inForce('ctxfold-compact', OPTIONS, saved).model).toBe('own')
    expect(inForce('ctxfold-monitor', OPTIONS, saved).model).toBe('shared')
    expect(inForce('ctxfold-monitor', OPTIONS, {}).model).toBe('gemini-x')
  })
  test('values of another type in the store do not count', () => {
    expect(inForce('p', OPTIONS, readSaved({ tier: 7, model: { '*': 3 }, thinking: 'high' }))).toEqual({
      model: 'gemini-x', thinking: 'default', tier: 'free', hasKey: true,
    })
  })
  test('paid and free are saved, and the key is never printed', () => {
    const reply = answer('paid', OPTIONS, {})
    expect(reply.save?.tier).toBe('paid')
    expect(answer('status', { ...OPTIONS, apiKey: 'SECRET-KEY' }, {}).text.includes('SECRET-KEY')).toBe(false)
  })
  test('model takes a plugin or all', () => {
    expect(answer('model gemini-y', OPTIONS, {}).save?.model).toEqual({ '*': 'gemini-y' })
    expect(answer('model ctxfold-compact gemini-y', OPTIONS, {}).save?.model).toEqual({ 'ctxfold-compact': 'gemini-y' })
  })
  test('an unknown level or word changes nothing and says what there is', () => {
    expect(answer('thinking huge', OPTIONS, {}).save).toBe(undefined)
    expect(answer('thinking huge', OPTIONS, {}).text).toContain('minimal')
    expect(answer('frobnicate', OPTIONS, {}).text).toContain('reset')
  })
})

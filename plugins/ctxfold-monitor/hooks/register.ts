import type { Register } from 'claude-code'
import { fillLine } from './fill'

export const register: Register = on => {
  on('turn.complete', async ($, e, next) => {
    const done = await next(e)
    if (e.agentId !== undefined) return done
    const { context } = await $.session.usage()
    const line = fillLine(context)
    if (line !== undefined) $.ui.status(line)
    return done
  })
}

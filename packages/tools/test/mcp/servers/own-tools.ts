import { defineTool } from '@tallystick/tools'
import type { Tool } from '@tallystick/core'
import { z } from 'zod'

/** Tools to serve; `stopped` are the reasons for which `slow` was stopped. */
export function ownTools(): {
  readonly add: Tool
  readonly slow: Tool
  readonly pay: Tool
  readonly stopped: unknown[]
} {
  const stopped: unknown[] = []
  return {
    stopped,
    add: defineTool({
      name: 'add',
      description: 'Adds two numbers.',
      input: z.object({ a: z.number(), b: z.number() }),
      effect: 'read',
      execute: ({ a, b }, { idempotencyKey }) => ({ sum: a + b, key: idempotencyKey }),
    }),
    slow: defineTool({
      name: 'slow',
      description: 'Takes until it is stopped.',
      input: { type: 'object' },
      effect: 'write',
      timeoutMs: 3_600_000,
      execute: (_input, { signal, progress }) =>
        new Promise((_resolve, reject) => {
          progress({ progress: 1, total: 2, message: 'begun' })
          signal.addEventListener('abort', () => {
            stopped.push((signal.reason as Error).message)
            reject(signal.reason as Error)
          })
        }),
    }),
    pay: defineTool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({ euros: z.number() }),
      effect: 'write',
      approval: ({ euros }) => euros > 50 && 'more than 50 euros',
      execute: ({ euros }) => `paid ${euros}`,
    }),
  }
}

// Five tools, each with one fault.
import { Observable } from 'rxjs'
import * as z from 'zod'
import type { Tool } from '@tallystick/core'
import type { ToolRun, ToolSignal } from '@tallystick/core/vocabulary'
import { defineTool } from '@tallystick/tools'

const input = z.object({ order: z.string() })
const text = (words: string) => [{ type: 'text' as const, text: words }]

/** Waits for a service that never answers. */
export const hangingTool: Tool = defineTool({
  ...{ name: 'lookup', description: 'Looks an order up.', input, effect: 'read' },
  execute: () => new Promise<string>(() => {}),
})

/** A tool written against the port itself. */
const rawTool = (name: string, run: (call: ToolRun) => Observable<ToolSignal>): Tool => ({
  ...{ name, description: 'Asks for an order.', effect: 'read', recovery: 'rerun', run },
  inputSchema: { type: 'object', properties: { order: { type: 'string' } } },
  check: () => ({ kind: 'run' }),
})

/** Reports its ending from a callback, and once more from its clean-up. */
export const twiceTool: Tool = rawTool(
  'status',
  () =>
    new Observable((subscriber) => {
      subscriber.next({ type: 'tool_ended', outcome: 'success', content: text('Shipped.') })
      subscriber.next({ type: 'tool_ended', outcome: 'failed', content: text('Connection closed.') })
      subscriber.complete()
    }),
)

/** Throws what its client throws: a proxy of something that is gone. */
export const proxyTool: Tool = defineTool({
  ...{ name: 'quote', description: 'Quotes a price.', input, effect: 'read' },
  execute: (): string => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    // oxlint-disable-next-line typescript/only-throw-error -- that is the fault
    throw proxy
  },
})

/** Says that it may be started again, and pays again. */
export function createPayingTool(payments: string[]): Tool {
  return defineTool({
    ...{ name: 'refund', description: 'Pays an order back.', input, effect: 'write', recovery: 'rerun' },
    execute: ({ order }) => `Payment ${payments.push(order)} of ${order}.`,
  })
}

/** Works on after it was asked to stop. */
export const deafTool: Tool = rawTool(
  'report',
  ({ cancelled$ }) =>
    new Observable((subscriber) => {
      let isAsked = false
      cancelled$.subscribe(() => (isAsked = true))
      subscriber.next({ type: 'tool_progressed', data: 'The report is being written.' })
      const write = async (): Promise<void> => {
        for (let page = 0; page < 3; page++) await Promise.resolve()
        // The pages that follow take an hour, and nobody looks at the signal.
        if (isAsked) return await new Promise(() => {})
        subscriber.next({ type: 'tool_ended', outcome: 'success', content: text('Written.') })
        subscriber.complete()
      }
      void write()
    }),
)

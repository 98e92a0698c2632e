import type { Tool } from '@tallystick/core'
import type { McpManager } from '@tallystick/tools/mcp'
import { describe, expect, it } from 'vitest'
import { callContext, endingOf } from '../one-call.ts'
import { connectFaulty } from './connected.ts'

/** What the server got beside the input of a call. */
async function metaOf({ tools }: McpManager): Promise<unknown> {
  const tool = tools.find(({ origin }) => origin?.name === 'meta') as Tool
  return JSON.parse((await endingOf(tool, {})).text)
}

describe('a call of a server', () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

  it('carries its place in a trace', async () => {
    const { toolCallId } = callContext
    const manager = await connectFaulty(
      {},
      { traceparent: (call) => (call.toolCallId === toolCallId ? traceparent : undefined) },
    )
    expect(await metaOf(manager)).toMatchObject({ traceparent })
  })

  it('is made without one where none can be had', async () => {
    const manager = await connectFaulty({}, { traceparent: () => Promise.reject(new Error('no ledger')) })
    expect(await metaOf(manager)).not.toHaveProperty('traceparent')
  })
})

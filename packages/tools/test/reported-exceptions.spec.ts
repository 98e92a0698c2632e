import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import {
  audit,
  defineTool,
  redact,
  ToolError,
  wrapTools,
  type ToolMiddleware,
  type ToolSpecification,
} from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

/** Runs one call of a tool with these parts; returns what the host was told, and the result on record. */
async function callOnce(
  parts: Partial<ToolSpecification<z.ZodObject>>,
  middleware: readonly ToolMiddleware[] = [],
) {
  const tool = defineTool({
    name: 'total',
    description: 'Adds up an order.',
    input: z.object({}),
    effect: 'read',
    execute: () => 7,
    ...parts,
  } as never)
  const reports: { readonly error: unknown; readonly what: string }[] = []
  const clock = manualClock()
  const host = { clock, report: (error: unknown, what: string) => void reports.push({ error, what }) }
  const agent = defineAgent({
    name: 'clerk',
    instructions: 'Add up.',
    model: scriptedModel([{ toolCalls: [{ name: 'total', input: {} }] }, { text: 'Done.' }]),
    tools: wrapTools([tool], middleware),
  })
  const ledger = memoryLedger()
  const { runId } = await waitUntilSettled(clock, createRuntime({ ledger, host }).run(agent, 'Go.').result)
  const results = (await Array.fromAsync(ledger.read(runId))).flatMap((event) =>
    event.type === 'tool_result' ? [event] : [],
  )
  return { reports, result: results[0] }
}

function failToAdd(): never {
  throw new Error('could not total A-7', { cause: new TypeError('lines is undefined') })
}

describe('an exception in the code of a tool', () => {
  it('given a tool that throws, when it is called, then host and record have its stack and causes, and the model its message', async () => {
    const { reports, result } = await callOnce({ execute: failToAdd })
    expect(reports).toMatchObject([
      { error: { message: 'could not total A-7', cause: { message: 'lines is undefined' } } },
    ])
    expect(reports[0]?.what).toBe(`The tool total threw (call ${result?.toolCallId})`)
    expect(result?.error).toMatch(
      /^Error: could not total A-7\n[^]*failToAdd[^]*\nCaused by: TypeError: lines is undefined\n/,
    )
    expect(result?.content).toEqual([{ type: 'text', text: 'Error: could not total A-7' }])
  })

  it('given a projection that throws, when the call has succeeded, then it is reported, and the result stays', async () => {
    const { reports, result } = await callOnce({ toModel: failToAdd })
    expect(reports).toHaveLength(1)
    expect(result).toMatchObject({ outcome: 'success', content: [{ text: '7' }] })
    expect(result?.error).toContain('failToAdd')
  })

  it('given an approval policy that throws, when a call is checked, then only the host learns why', async () => {
    const { reports, result } = await callOnce({ approval: failToAdd })
    expect(reports).toMatchObject([{ error: { message: 'could not total A-7' } }])
    expect(reports[0]?.what).toContain('of the tool total failed')
    expect(result?.outcome).toBe('denied')
    expect(JSON.stringify(result)).not.toContain('A-7')
  })

  it('given an error that the tool throws for the model, when it is called, then nothing is reported', async () => {
    const { reports, result } = await callOnce({
      execute: () => {
        throw new ToolError('Order A-7 is closed.')
      },
    })
    expect(reports).toEqual([])
    expect(result).not.toHaveProperty('error')
  })

  it('given middleware that hides what a result says, when the tool throws, then the stack is hidden, too', async () => {
    const hidden = await callOnce({ execute: failToAdd }, [redact((text) => text.replaceAll('A-7', '***'))])
    expect(hidden.result?.content).toEqual([{ type: 'text', text: 'Error: could not total ***' }])
    expect(JSON.stringify(hidden.result)).not.toContain('A-7')
    const noted = await callOnce({ execute: failToAdd }, [audit(() => undefined)])
    expect(noted.result?.error).toContain('A-7')
  })

  it('given middleware that changes only what the model reads, when the tool throws, then the stack is hidden, too', async () => {
    const shorten: ToolMiddleware = {
      name: 'shorten',
      run: async (_call, next) => {
        const ending = await next()
        return 'externalId' in ending ? ending : { ...ending, projected: [{ type: 'text', text: 'No.' }] }
      },
    }
    const { reports, result } = await callOnce({ execute: failToAdd }, [shorten])
    expect([reports, result?.projected]).toEqual([[], [{ type: 'text', text: 'No.' }]])
    expect(result).not.toHaveProperty('error')
  })

  it('given middleware that throws, before or after the tool ran, then host and record have its stack', async () => {
    const before: ToolMiddleware = { name: 'count', run: failToAdd }
    const after: ToolMiddleware = { name: 'count', run: async (_call, next) => (await next(), failToAdd()) }
    for (const middleware of [before, after]) {
      const { reports, result } = await callOnce({}, [middleware])
      expect(reports).toMatchObject([{ error: { message: 'could not total A-7' } }])
      expect(result?.error).toContain('failToAdd')
    }
  })

  const ownCause = new Error('round')
  ownCause.cause = ownCause
  it.each([
    ['a proxy', new Proxy({}, { get: () => failToAdd(), getPrototypeOf: () => failToAdd() })],
    ['its own cause', ownCause],
    ['nothing', undefined],
  ])(
    'given %s as what is thrown, when it is called, then the call fails and the run goes on',
    async (_what, thrown) => {
      const { reports, result } = await callOnce({
        execute: () => {
          throw thrown as Error
        },
      })
      expect(reports).toHaveLength(1)
      expect(result?.outcome).toBe('failed')
      expect(result?.error?.length).toBeLessThanOrEqual(8_000)
    },
  )
})

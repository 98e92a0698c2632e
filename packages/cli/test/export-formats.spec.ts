import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { readViewLines } from '../src/verbs/transfer.ts'
import { openShop } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

const linesOf = (stdout: string): readonly unknown[] => stdout.trimEnd().split('\n').map(json)

interface Traces {
  readonly resourceSpans: readonly {
    readonly resource: unknown
    readonly scopeSpans: readonly { readonly spans: readonly Readonly<Record<string, unknown>>[] }[]
  }[]
}

const spansIn = (lines: readonly unknown[]): readonly Readonly<Record<string, unknown>>[] =>
  (lines as readonly Traces[])
    .flatMap(({ resourceSpans }) => resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans)

describe('export in another format', () => {
  it('prints requests of OTLP, which a receiver takes as they are', async () => {
    await using shop = await openShop()
    const [first, second] = [await shop.start(), await shop.start()]
    const bodies: unknown[] = []
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        bodies.push(json(Buffer.concat(chunks).toString()))
        response.setHeader('content-type', 'application/json').end('{}')
      })
    })
    await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void receiver.close())
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/v1/traces`
    const { stdout, code } = await tallystickHere('export', shop.ledgerPath, '--format', 'otlp')
    expect(code).toBe(0)
    for (const body of stdout.trimEnd().split('\n')) {
      await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    }
    const spans = spansIn(bodies)
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(
      new Set([first, second].map(({ runId }) => runId.replaceAll('-', ''))),
    )
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)
    expect(spans[0]).toMatchObject({ kind: 3, startTimeUnixNano: expect.stringMatching(/^\d{19}$/) })
    expect(stdout).toContain('"service.name","value":{"stringValue":"tallystick"}')
  })

  it('prints five hundred spans in a request at most', async () => {
    const [ledger, calls] = [memoryLedger(), 510]
    const look = Array.from({ length: calls }, (_, n) => ({ name: 'look', input: { n } }))
    const agent = defineAgent({
      ...{ name: 'busy', instructions: 'Look.', tools: [testTool({ name: 'look' })] },
      model: scriptedModel([{ toolCalls: look }, { text: 'Seen.' }]),
      limits: { maxToolCalls: calls, maxToolCallsPerTurn: calls },
    })
    const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Look.').result
    const requests = await Array.fromAsync(readViewLines(ledger, 'otlp', { runId, withChildren: false }))
    const counts = requests.map((request) => spansIn([json(request)]).length)
    expect(counts).toEqual([500, expect.any(Number)])
    expect(counts[1]).toBeGreaterThan(calls - 500)
    expect(counts[1]).toBeLessThan(500)
  })

  it('names the service as the environment does', async () => {
    await using shop = await openShop()
    await shop.start()
    vi.stubEnv('OTEL_SERVICE_NAME', 'desk')
    onTestFinished(() => void vi.unstubAllEnvs())
    const { stdout } = await tallystickHere('export', shop.ledgerPath, '--run', 'latest', '--format', 'otlp')
    expect(stdout).toContain('"stringValue":"desk"')
  })

  it('prints what a client of AG-UI is sent', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const { stdout } = await tallystickHere('export', shop.ledgerPath, '--format', 'agui')
    const events = linesOf(stdout)
    expect(events[0]).toMatchObject({ type: 'RUN_STARTED', runId })
    expect(events.length).toBeGreaterThan(2)
  })

  it('prints the messages that the model is shown, one run a line', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const { stdout } = await tallystickHere('export', shop.ledgerPath, '--format', 'messages')
    const [line, ...others] = linesOf(stdout) as { runId: string; messages: { role: string }[] }[]
    expect(others).toEqual([])
    expect(line?.runId).toBe(runId)
    expect(line?.messages.map(({ role }) => role).slice(0, 3)).toEqual(['user', 'assistant', 'tool'])
  })

  it('refuses any other one', async () => {
    await using shop = await openShop()
    const { code, stderr } = await tallystickHere('export', shop.ledgerPath, '--format', 'xml')
    expect(code).toBe(2)
    expect(stderr).toContain('otlp')
  })
})

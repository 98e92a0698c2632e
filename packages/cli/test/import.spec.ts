import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { readViewLines } from '../src/verbs/transfer.ts'
import { openShop } from './kit/shop.ts'
import { json, tallystickFed, tallystickHere } from './kit/tallystick.ts'

describe('import', () => {
  it('reads what export printed into a new ledger, which lists, exports and verifies the same', async () => {
    await using shop = await openShop()
    const [older, newer] = [await shop.start(), await shop.start()]
    const { stdout: lines } = await tallystickHere('export', shop.ledgerPath)
    const [file, copy] = [join(shop.folder, 'runs.jsonl'), join(shop.folder, 'copy.db')]
    await writeFile(file, lines)
    expect(await tallystickHere('import', copy, file)).toEqual({
      code: 0,
      stderr: '',
      stdout:
        `${older.runId}  ${older.seq} events\n${newer.runId}  ${newer.seq} events\n` +
        `imported  2 runs, ${older.seq + newer.seq} events\n`,
    })
    for (const verb of ['list', 'export']) {
      expect(await tallystickHere(verb, copy)).toEqual(await tallystickHere(verb, shop.ledgerPath))
    }
    const [here, there] = [
      await tallystickHere('verify', copy),
      await tallystickHere('verify', shop.ledgerPath),
    ]
    // The copy tells where its runs come from.
    expect(here.stdout).toMatch(/18 events; imported by \S+, 2\S+\n/)
    expect(here.stdout.replaceAll(/; imported by .*/g, '')).toBe(there.stdout)
    const again = await tallystickHere('import', copy, file, '--json')
    expect(again.stdout.trimEnd().split('\n').map(json)).toEqual([
      { runId: older.runId, events: 0, present: older.seq },
      { runId: newer.runId, events: 0, present: newer.seq },
      { runs: 2, events: 0, present: older.seq + newer.seq },
    ])
  })

  it('reads its standard input where the file is -', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const { stdout: lines } = await tallystickHere('export', shop.ledgerPath)
    const copy = join(shop.folder, 'copy.db')
    expect(await tallystickFed(lines, 'import', copy, '-')).toEqual({
      ...{ code: 0, stderr: '' },
      stdout: `${runId}  ${seq} events\nimported  1 run, ${seq} events\n`,
    })
    expect(await tallystickHere('export', copy)).toMatchObject({ stdout: lines })
  })

  it('leaves out a last line that is cut off, and says so', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const file = join(shop.folder, 'runs.jsonl')
    await writeFile(file, (await tallystickHere('export', shop.ledgerPath)).stdout)
    await appendFile(file, `{"runId":"${runId}","seq":${seq + 1},"epo`)
    const { code, stdout, stderr } = await tallystickHere('import', join(shop.folder, 'copy.db'), file)
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `Line ${seq + 1}, the last one, is cut off in the middle of an event, so it was left out.\n`,
    })
    expect(stdout).toContain(`imported  1 run, ${seq} events\n`)
  })

  it('is a 4 for a damaged line, a 1 for another run of the same name, and a 5 for no file', async () => {
    await using shop = await openShop()
    const { seq } = await shop.start()
    const file = join(shop.folder, 'runs.jsonl')
    const { stdout } = await tallystickHere('export', shop.ledgerPath)
    await writeFile(file, 'garbage')
    expect(await tallystickHere('import', join(shop.folder, 'garbage.db'), file)).toMatchObject({
      ...{
        code: 4,
        stdout: '',
        stderr: expect.stringContaining('Line 1 cannot be imported: it is not JSON'),
      },
    })
    await writeFile(file, stdout.replace('\n', '\nno event\n'))
    const damaged = await tallystickHere('import', join(shop.folder, 'copy.db'), file)
    expect(damaged).toMatchObject({ code: 4, stdout: '' })
    expect(damaged.stderr).toContain('error: Line 2 cannot be imported: it is not JSON')
    await writeFile(file, stdout.replace('"text":"Buy tea."', '"text":"Buy coffee."'))
    const other = await tallystickHere('import', shop.ledgerPath, file)
    expect(other).toMatchObject({ code: 1, stdout: '' })
    expect(other.stderr).toContain('differs from the imported one')
    expect((await tallystickHere('export', shop.ledgerPath)).stdout).toBe(stdout)
    expect(stdout.trimEnd().split('\n')).toHaveLength(seq)
    for (const absent of [join(shop.folder, 'absent.jsonl'), shop.folder]) {
      expect(await tallystickHere('import', join(shop.folder, 'copy.db'), absent)).toMatchObject({
        code: 5,
        stderr: expect.stringContaining(`There is no file ${absent}`),
      })
    }
    expect(await readFile(file, 'utf8')).toContain('coffee')
  })
})

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

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:net'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineAgent, memoryLedger, type Ledger, type RuntimeEvent } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { answerOf, framesOf, openOffice, tellingAgent } from './kit/office.ts'

const stream = { accept: 'text/event-stream' }

/** Opens one ledger file, as two processes would. */
function openFile(): () => Ledger {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-server-'))
  const ledgers: Ledger[] = []
  onTestFinished(async () => {
    for (const ledger of ledgers) await ledger.close()
    rmSync(folder, { recursive: true })
  })
  return () => {
    const ledger = sqliteLedger(join(folder, 'runs.db'), { pollIntervalMs: 5 })
    ledgers.push(ledger)
    return ledger
  }
}

interface Waiting {
  readonly pendingApprovals: readonly { toolCallId: string }[]
}

describe('a run of another process', () => {
  it('is followed, decided and woken through the ledger', async () => {
    const open = openFile()
    const one = await openOffice({ ledger: open() })
    const other = await openOffice({ ledger: open() })
    const runId = await one.start('boss')
    const following = other.send(`/runs/${runId}/events`, 'boss', undefined, stream)
    const result = await other.send(`/runs/${runId}/result?waitMs=20000`)
    const { pendingApprovals } = (await result.json()) as Waiting
    const { toolCallId } = pendingApprovals[0] ?? {}
    expect((await other.send(`/runs/${runId}/approve`, 'boss', { toolCallId })).status).toBe(200)
    const ended = await one.send(`/runs/${runId}/result?waitMs=20000`)
    expect(await ended.json()).toMatchObject({ status: 'done', text: 'Payment: 5 USD paid' })
    const events: RuntimeEvent[] = []
    for await (const { data } of framesOf(await following)) events.push(JSON.parse(data) as RuntimeEvent)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(events.at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
  })

  it('is resumed after its process has gone, and not while a process drives it', async () => {
    const ledger = memoryLedger()
    const stuck = defineAgent({
      name: 'teller',
      instructions: 'Answer.',
      model: scriptedModel([{ text: 'I think', hang: true }]),
    })
    const one = await openOffice({ ledger, agents: [stuck] })
    const runId = await one.start('boss')
    expect(await answerOf(await one.send(`/runs/${runId}/resume`, 'boss', {}))).toMatchObject({
      status: 409,
      code: 'under_way',
    })
    await one.listening.close(0)
    const other = await openOffice({ ledger, agents: [tellingAgent('teller', 'Done.')] })
    expect(await answerOf(await other.send(`/runs/${runId}`))).toMatchObject({ status: 200 })
    expect((await other.send(`/runs/${runId}/resume`, 'boss', {})).status).toBe(202)
    const ended = await other.send(`/runs/${runId}/result?waitMs=20000`)
    expect(await ended.json()).toMatchObject({ status: 'done', text: 'Done.' })
    expect(await answerOf(await other.send(`/runs/${runId}/resume`, 'boss', {}))).toMatchObject({
      status: 409,
      code: 'run_finished',
    })
  })
})

describe('a stream', () => {
  it('shows that it lives while nothing happens', async () => {
    const clock = manualClock()
    const office = await openOffice({ clock, heartbeatMs: 1_000 })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const response = await office.send(`/runs/${runId}/events`, 'boss', undefined, stream)
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('\n: \n\n')) {
      while (clock.pending === 0) await new Promise(setImmediate)
      clock.advance(1_000)
      text += (await reader.read()).value
    }
    await reader.cancel()
    expect(text).toContain('approval_requested')
  })

  it('reads no further than its reader takes, and loses nothing', async () => {
    const count = 400
    const noisy = testTool({
      name: 'noisy',
      run: (_, report) => {
        for (let index = 0; index < count; index++) report.progress({ index, text: 'x'.repeat(50_000) })
        return 'Loud.'
      },
    })
    const steps = [{ toolCalls: [{ name: 'noisy', input: {} }] }, { text: 'Done.' }]
    const agent = defineAgent({
      name: 'a',
      instructions: 'Work.',
      model: scriptedModel(steps),
      tools: [noisy],
    })
    const writer = await openOffice({ agents: [agent] })
    const runId = await writer.start('boss')
    await writer.send(`/runs/${runId}/result?waitMs=20000`)
    let reads = 0
    const ledger: Ledger = {
      ...writer.ledger,
      async *read(...range) {
        for await (const event of writer.ledger.read(...range)) {
          reads++
          yield event
        }
      },
    }
    const office = await openOffice({ ledger, agents: [agent] })
    const socket = connect(office.listening.port, '127.0.0.1')
    await once(socket, 'connect')
    const head = `GET /runs/${runId}/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer boss\r\n`
    socket.write(`${head}accept: text/event-stream\r\n\r\n`)
    // The buffers of the connection are full when nothing more is read for a while.
    for (let before = -1, still = 0; still < 300; still = before === reads ? still + 1 : 0) {
      before = reads
      await new Promise(setImmediate)
    }
    expect(reads).toBeGreaterThan(0)
    expect(reads).toBeLessThan(count / 2)
    const ids: number[] = []
    let rest = ''
    for await (const data of socket.setEncoding('utf8') as AsyncIterable<string>) {
      const frames = (rest + data).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames)
        ids.push(...[...frame.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)))
      if (frames.some((frame) => frame.includes('run_finished'))) break
    }
    expect(ids).toEqual(ids.map((_, index) => index + 1))
    expect(ids.length).toBeGreaterThan(count)
  })
})

describe('a server that stops', () => {
  it('starts nothing more, and ends its streams after the last event', async () => {
    const agents = [
      defineAgent({
        name: 'teller',
        instructions: 'Answer.',
        model: scriptedModel([{ text: 'I think', hang: true }]),
      }),
    ]
    const office = await openOffice({ agents })
    const runId = await office.start('boss')
    const response = await office.send(`/runs/${runId}/events`, 'boss', undefined, stream)
    const following = (async () => {
      const types: string[] = []
      for await (const { data } of framesOf(response)) types.push((JSON.parse(data) as RuntimeEvent).type)
      return types
    })()
    const stopped = await office.server.drain(0)
    expect(stopped).toMatchObject([{ runId, status: 'interrupted' }])
    const refused = await office.send('/runs', 'boss', { agent: 'teller', input: 'Hi.' })
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await answerOf(refused)).toMatchObject({ status: 503, code: 'stopping' })
    expect((await office.send(`/runs/${runId}`)).status).toBe(200)
    const types = await following
    const recorded = (await answerOf(await office.send(`/runs/${runId}/events`)))['events'] as RuntimeEvent[]
    expect(types).toEqual(recorded.map(({ type }) => type))
  })
})

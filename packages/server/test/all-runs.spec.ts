import { describe, expect, it } from 'vitest'
import { defineAgent, type RuntimeEvent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import type { TailedEvent } from '@tallystick/core/vocabulary'
import { answerOf, framesOf, openOffice, tellingAgent } from './kit/office.ts'

const stream = { accept: 'text/event-stream' }

describe('the events of all runs', () => {
  it('come once each, also to a reader that reconnects, and only of runs that it sees', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.', 'Three.')] })
    const runIds: string[] = []
    for (const as of ['ada', 'bob', 'ada']) {
      const runId = await office.start(as)
      runIds.push(runId)
      await office.send(`/runs/${runId}/result?waitMs=20000`)
    }
    const page = async (as: string, after = ''): Promise<readonly TailedEvent[]> =>
      (await answerOf(await office.send(`/events?after=${after}`, as)))['events'] as readonly TailedEvent[]
    const all = await page('boss')
    expect(new Set(all.map(({ event }) => event.runId))).toEqual(new Set(runIds))
    const adas = await page('ada')
    expect(adas).toEqual(all.filter(({ event }) => event.runId !== runIds[1]))
    expect(await page('ada', encodeURIComponent(adas[3]!.cursor))).toEqual(adas.slice(4))

    const headers = { ...stream, 'last-event-id': adas[3]!.cursor }
    const response = await office.send('/events', 'ada', undefined, headers)
    const followed: RuntimeEvent[] = []
    for await (const { id, data } of framesOf(response)) {
      followed.push(JSON.parse(data) as RuntimeEvent)
      if (id === adas.at(-1)?.cursor) break
    }
    expect(followed).toEqual(adas.slice(4).map(({ event }) => event))
    const foreign = await office.send('/events?after=nonsense', 'ada', undefined, stream)
    expect(await answerOf(foreign)).toMatchObject({ status: 400, code: 'configuration' })
  })
})

describe('the cursor of an event that its reader does not see', () => {
  it('tells neither the run nor its existence, and continues for that reader only', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.', 'Three.')] })
    const run = async (as: string): Promise<string> => {
      const runId = await office.start(as)
      await office.send(`/runs/${runId}/result?waitMs=20000`)
      return runId
    }
    const bobs = await run('bob')
    const pageOf = async (as: string, after: string) =>
      await answerOf(await office.send(`/events?after=${encodeURIComponent(after)}`, as))
    const { after, ...page } = await pageOf('ada', '')
    expect(page).toEqual({ status: 200, events: [] })
    expect(after).toMatch(/^sealed:[\w-]+$/)
    expect(Buffer.from(String(after).slice(7), 'base64url').toString('latin1')).not.toContain(bobs)
    const again = await pageOf('ada', String(after))
    expect(again).toEqual({ status: 200, events: [], after })
    const adas = await run('ada')
    const next = await pageOf('ada', String(after))
    const events = next['events'] as readonly TailedEvent[]
    expect(new Set(events.map(({ event }) => event.runId))).toEqual(new Set([adas]))
    expect(next['after']).toBe(events.at(-1)?.cursor)
    for (const [as, given] of [
      ['bob', String(after)],
      ['ada', `${String(after).slice(0, -2)}AA`],
      ['ada', 'sealed:'],
      ['ada', `sealed:${'a'.repeat(41)}`],
    ] as const) {
      expect({ as, given, ...(await pageOf(as, given)) }).toMatchObject({ status: 400, code: 'malformed' })
    }
    expect(office.reported).toEqual([])
  })

  it('is sent only after many of them, so that a stream does not tell when others work', async () => {
    const noisy = testTool({
      name: 'noisy',
      run: (_, report) => {
        for (let index = 0; index < 1_500; index++) report.progress({ index })
        return 'Loud.'
      },
    })
    const model = scriptedModel([
      { toolCalls: [{ name: 'noisy', input: {} }] },
      { text: 'Done.' },
      { text: 'Quiet.' },
    ])
    const agent = defineAgent({ name: 'worker', instructions: 'Work.', model, tools: [noisy] })
    const office = await openOffice({ agents: [agent] })
    const run = async (as: string): Promise<string> => {
      const runId = await office.start(as)
      await office.send(`/runs/${runId}/result?waitMs=20000`)
      return runId
    }
    const bobs = await run('bob')
    const adas = await run('ada')
    let text = ''
    const read = async (last: string): Promise<void> => {
      const headers = { ...stream, 'last-event-id': last }
      const { body } = await office.send('/events', 'ada', undefined, headers)
      for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
        text += chunk
        if (text.includes('run_finished')) return
      }
    }
    await read('')
    expect(text).not.toContain(bobs)
    const places = [...text.matchAll(/^id: (sealed:.*)\n\n/gm)].map(([, place]) => place!)
    const all = await Array.fromAsync(office.ledger.tail())
    const before = all.findIndex(({ event }) => event.runId === adas)
    expect(before).toBeGreaterThan(1_000)
    expect(places).toHaveLength(Math.floor(before / 1_000))
    text = ''
    await read(places[0]!)
    expect(text.split('\n\n')[0]).toContain(adas)
  })
})

describe('a session', () => {
  it('is read in pages, of which the first has the history', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.', 'Three.')] })
    const runIds: string[] = []
    for (let count = 0; count < 3; count++) {
      const runId = await office.start('ada', { sessionId: 's1' })
      runIds.unshift(runId)
      await office.send(`/runs/${runId}/result?waitMs=20000`)
    }
    const other = await office.start('ada')
    const [third, second, first] = runIds
    const pageOf = async (query: string, as = 'ada') =>
      await answerOf(await office.send(`/sessions/s1${query}`, as))
    const begin = await pageOf('?limit=2')
    expect(begin).toMatchObject({
      ...{ status: 200, runs: [{ runId: third }, { runId: second }], before: second },
      history: { runId: third },
    })
    const end = await pageOf(`?limit=2&before=${second}`)
    expect(end).toEqual({ status: 200, sessionId: 's1', runs: [expect.objectContaining({ runId: first })] })
    expect(Object.keys(await pageOf('?limit=3'))).toEqual(['sessionId', 'runs', 'history', 'status'])
    for (const [query, as, status] of [
      ['?limit=0', 'ada', 400],
      ['?limit=201', 'ada', 400],
      [`?before=${other}`, 'ada', 404],
      [`?before=${second}`, 'bob', 404],
      ['?before=none', 'ada', 404],
    ] as const) {
      expect({ query, ...(await pageOf(query, as)) }).toMatchObject({ query, status })
    }
  })

  it('is its runs and its history, for those who see them', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
    const runIds: string[] = []
    for (let count = 0; count < 2; count++) {
      const runId = await office.start('ada', { sessionId: 's1' })
      runIds.unshift(runId)
      await office.send(`/runs/${runId}/result?waitMs=20000`)
    }
    const answer = await answerOf(await office.send('/sessions/s1', 'ada'))
    expect(answer).toMatchObject({ status: 200, runs: runIds.map((runId) => ({ runId })) })
    expect(answer['history']).toMatchObject({ runId: runIds[0], messages: { length: 4 } })
    for (const [path, as] of [
      ['/sessions/s1', 'bob'],
      ['/sessions/s2', 'ada'],
    ] as const) {
      expect(await answerOf(await office.send(path, as))).toMatchObject({
        status: 404,
        code: 'session_not_found',
      })
    }
  })
})

import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentTool, createRuntime, defineAgent, memoryLedger, type RunId } from '@tallystick/core'
import { collectCases } from '@tallystick/evals'
import { redact, writeCheckpoint } from '@tallystick/ledger'
import { createServer } from '@tallystick/server'
import { scriptedModel } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { answerOf, openOffice, payingAgent, tellingAgent } from './kit/office.ts'
import { inspectionCases } from './kit/inspection-cases.ts'
import { temporaryFolder, temporaryLedger } from './kit/temporary-ledger.ts'

describe('what the inspector reads, from a ledger file', () => {
  it.each(Object.entries(inspectionCases))('%s', async (_claim, holds) => {
    await expect(holds(temporaryLedger())).resolves.toBeUndefined()
  })
})

describe('what the inspector reads, from a ledger without projections', () => {
  const brief = Object.entries(inspectionCases).filter(([claim]) => !claim.includes('record'))
  it.each(brief)('%s', async (_claim, holds) => {
    await expect(holds(memoryLedger())).resolves.toBeUndefined()
  })

  it('has no rows to verify elsewhere', async () => {
    const office = await openOffice()
    const runId = await office.start('boss')
    expect(await answerOf(await office.send(`/runs/${runId}/record`))).toMatchObject({ status: 400 })
  })
})

describe('a request about the past of a run', () => {
  it('names what it cannot use', async () => {
    const office = await openOffice({ ledger: temporaryLedger() })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const refused = async (path: string, status = 400): Promise<string> => {
      const answer = await answerOf(await office.send(path))
      expect({ path, status: answer.status }).toEqual({ path, status })
      return String(answer['detail'])
    }
    expect(await refused('/runs?outcome=good')).toContain('outcome has to be one of success')
    expect(await refused('/runs?status=open')).toContain('under_way')
    expect(await refused('/runs?reason=bored')).toContain('reason has to be one of answered')
    expect(await refused('/runs?roots=yes')).toBe('roots has to be one of true, false.')
    expect(await refused('/stats?by=week')).toBe('by has to be hour or day.')
    expect(await refused('/stats?startedSince=1')).toContain(
      '1000 is the most. Ask for a shorter time, or by=day.',
    )
    expect(await refused('/search?input=order')).toContain('a path and a value')
    expect(await refused('/search?after=none')).toContain('Ask for the first page again.')
    expect(await refused(`/runs/${runId}/diff`)).toContain('with is missing')
    expect(await refused(`/runs/${runId}/diff?with=none`, 404)).toContain('none')
    expect(await refused(`/runs/${runId}/request?turn=7`, 404)).toContain('no turn 7')
    expect(await refused(`/runs/${runId}/explain?turn=7`, 404)).toContain('/steps lists its turns')
    expect(await refused(`/runs/${runId}/state?at=999`, 404)).toContain(runId)
    expect(await refused(`/runs/${runId}/export?format=pdf`)).toContain('format is events or html')
    expect(await refused(`/runs/${runId}/regression?definitions=old`)).toContain('today, recorded')
    expect(office.reported).toEqual([])
  })

  it('shows the raw record and replays only for those who may', async () => {
    const office = await openOffice({ ledger: temporaryLedger() })
    const runId = await office.start('ada')
    await office.send(`/runs/${runId}/result?waitMs=20000`, 'ada')
    const raw = ['state', 'record', 'export', 'regression'].map((part) => `/runs/${runId}/${part}`)
    const statuses = async (as: string): Promise<readonly number[]> => [
      ...(await Promise.all(raw.map(async (path) => (await office.send(path, as)).status))),
      (await office.send(`/runs/${runId}/replay`, as, {})).status,
    ]
    expect(await statuses('ada')).toEqual([403, 403, 403, 403, 403])
    expect(await statuses('viewer')).toEqual([200, 200, 200, 200, 403])
    expect(await statuses('boss')).toEqual([200, 200, 200, 200, 200])
    expect((await office.send(`/runs/${runId}/request`, 'ada')).status).toBe(200)
    expect((await office.send(`/runs/${runId}/request`, 'bob')).status).toBe(404)
    const named = await openOffice({
      ledger: office.ledger,
      authorize: () => ({ name: 'eve', sees: { subjects: ['ada'] }, may: ['inspect', 'replay'] }),
    })
    for (const path of raw) expect((await named.send(path)).status).toBe(200)
  })
})

describe('cases of runs', () => {
  it('are those that the filters let through, page by page, or of named runs, for who may inspect', async () => {
    const agents = [tellingAgent('teller', 'One.', 'Two.', 'Three.'), payingAgent('cashier')]
    const office = await openOffice({ ledger: temporaryLedger(), agents })
    const told: string[] = []
    for (const as of ['ada', 'bob', 'ada']) {
      const input = `I am ${as}, password=hunter2secret`
      const runId = await office.start(as, { agent: 'teller', input })
      await (await office.send(`/runs/${runId}/result?waitMs=20000`, as)).text()
      told.push(runId)
    }
    await office.send(`/runs/${told[0]}/feedback`, 'ada', { score: 0.5 })
    const waiting = await office.start('ada', { agent: 'cashier' })
    await (await office.send(`/runs/${waiting}/result?waitMs=20000`, 'ada')).text()
    const read = async (query: string, by = office) => {
      const response = await by.send(`/dataset?${query}`)
      const text = await response.text()
      expect(text).not.toContain('hunter2')
      return JSON.parse(text) as {
        readonly status?: number
        readonly cases: readonly { readonly id: string; readonly feedback?: unknown }[]
        readonly leftOut: unknown
        readonly before?: string
      }
    }
    const idsOf = async (query: string, by = office) => (await read(query, by)).cases.map(({ id }) => id)
    const all = await read('')
    expect(all.cases.map(({ id }) => id)).toEqual(told.toReversed())
    expect(all.leftOut).toEqual([{ runId: waiting, reason: 'it has not ended' }])
    expect(all.cases).toEqual(await Array.fromAsync(collectCases(office.ledger)))
    expect(await idsOf('maxScore=0.5')).toEqual([told[0]])
    const first = await read('agent=teller&limit=2')
    expect(first.cases).toHaveLength(2)
    expect(await idsOf(`agent=teller&limit=2&before=${first.before}`)).toEqual([told[0]])
    expect(await idsOf(`run=${told[1]}&run=${told[0]}`)).toEqual([told[1], told[0]])
    expect(await read(`run=${told[0]}&run=none`)).toMatchObject({ status: 404 })
    expect((await read(Array(201).fill(`run=${told[0]}`).join('&'))).status).toBe(400)
    expect((await office.send('/dataset', 'ada')).status).toBe(403)
    const named = await openOffice({
      ledger: office.ledger,
      authorize: () => ({ name: 'eve', sees: { subjects: ['ada'] }, may: ['inspect'] }),
    })
    expect(await idsOf('', named)).toEqual([told[2], told[0]])
    expect((await read(`run=${told[1]}`, named)).status).toBe(404)
    expect(office.reported).toEqual([])
  })
})

it('a page of cases ends where it is long, of named runs too', async () => {
  const agents = [tellingAgent('teller', ...Array<string>(3).fill('long '.repeat(120_000)))]
  const office = await openOffice({ ledger: temporaryLedger(), agents })
  const told: string[] = []
  for (let run = 0; run < 3; run++) {
    const runId = await office.start('boss', { agent: 'teller' })
    await (await office.send(`/runs/${runId}/result?waitMs=20000`)).text()
    told.unshift(runId)
  }
  for (const query of ['limit=3', told.map((id) => `run=${id}`).join('&')]) {
    const first = await answerOf(await office.send(`/dataset?${query}`))
    expect(first['cases']).toHaveLength(2)
    expect(first['before']).toBe(told[1])
  }
  const rest = await answerOf(await office.send(`/dataset?limit=3&before=${told[1]}`))
  expect([rest['cases'], rest['before']]).toEqual([[expect.objectContaining({ id: told[2] })], undefined])
})

describe('the tree of a run', () => {
  it('nests child runs under the calls that they do the work of', async () => {
    const ledger = temporaryLedger()
    const worker = defineAgent({
      ...{ name: 'worker', description: 'Works.', instructions: 'Work.' },
      model: scriptedModel([{ text: 'Done.' }]),
    })
    const boss = defineAgent({
      ...{ name: 'boss', instructions: 'Lead.', tools: [agentTool(worker)] },
      model: scriptedModel([
        { toolCalls: [{ name: 'worker', input: { task: 'Do it.' } }] },
        { text: 'It is done.' },
      ]),
    })
    const office = await openOffice({ ledger, agents: [boss] })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const tree = await answerOf(await office.send(`/runs/${runId}/tree`))
    expect(tree).toMatchObject({
      ...{ status: 200, runId, agent: 'boss' },
      children: [
        {
          ...{ agent: 'worker', status: 'done', toolCallId: expect.stringContaining('call_') },
          ...{ grant: { turns: expect.any(Number) }, tokens: expect.any(Number), children: [] },
        },
      ],
    })
    const page = (await (await office.send('/runs')).json()) as { runs: readonly { parent?: object }[] }
    expect(page.runs).toHaveLength(2)
    const { buckets } = (await (await office.send('/stats')).json()) as {
      buckets: readonly { runs: number }[]
    }
    expect(buckets.map(({ runs }) => runs)).toEqual([1])
  })
})

describe('a replay over HTTP', () => {
  it('says whether the agents of the process do the same, with the rules of its runtime', async () => {
    const ledger = temporaryLedger()
    const office = await openOffice({ ledger, agents: [tellingAgent('cashier', 'Paid.')] })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const same = await answerOf(await office.send(`/runs/${runId}/replay`, 'boss', {}))
    expect(same).toEqual({ status: 200, runId, events: expect.any(Number) })
    const changed = defineAgent({
      ...{ name: 'cashier', instructions: 'Answer otherwise.' },
      model: scriptedModel([{ text: 'Paid.' }]),
    })
    const other = await openOffice({ ledger, agents: [changed] })
    const report = await answerOf(await other.send(`/runs/${runId}/replay`, 'boss', {}))
    expect(report).toMatchObject({ status: 200, divergence: { seq: 1 } })
    const recorded = { definitions: 'recorded' }
    expect(await answerOf(await other.send(`/runs/${runId}/replay`, 'boss', recorded))).toEqual(same)
    const none = await openOffice({ ledger, agents: [tellingAgent('teller', 'Hi.')] })
    const unknown = await answerOf(await none.send(`/runs/${runId}/replay`, 'boss', {}))
    expect(unknown).toMatchObject({ status: 409, code: 'agent_unknown' })
  })
})

describe('the first words of a run', () => {
  it('are gone once they were redacted, with its tags', async () => {
    const ledger = temporaryLedger()
    const agent = tellingAgent('cashier', 'Paid.')
    const office = await openOffice({ ledger, agents: [agent] })
    const runId = (await office.start('boss', { input: 'My PIN is 1234.', tags: ['pin'] })) as RunId
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const rows = async (query = ''): Promise<readonly object[]> =>
      ((await (await office.send(`/runs${query}`)).json()) as { runs: readonly object[] }).runs
    expect(await rows()).toMatchObject([{ firstWords: 'My PIN is 1234.', tags: ['pin'] }])
    expect(await rows('?q=pin')).toHaveLength(1)
    expect(await rows('?tag=pin')).toHaveLength(1)
    await redact(ledger, runId, 'all', { by: 'Ada', reason: 'asked for' })
    expect(JSON.stringify(await rows())).not.toMatch(/1234|pin/i)
    expect(await rows('?q=pin')).toEqual([])
    expect(await rows('?tag=pin')).toEqual([])
    const found = await answerOf(await office.send('/search?q=1234'))
    expect(found['hits']).toEqual([])
  })
})

describe('signed checkpoints', () => {
  it('say up to which event a run is as it was signed, and by whom', async () => {
    const folder = temporaryFolder()
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const file = join(folder, 'checkpoints')
    const ledger = temporaryLedger()
    const office = await openOffice({ ledger, checkpoints: { file, publicKey } })
    const signed = async (runId: string, its = office): Promise<unknown> =>
      (await answerOf(await its.send(`/runs/${runId}/verify`)))['signed']
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    expect(await signed(runId)).toMatchObject({ seq: 0, broken: { what: 'file' } })
    await writeCheckpoint(ledger, { file, key: privateKey, origin: 'example.com/office' })
    const { events } = await answerOf(await office.send(`/runs/${runId}/verify`))
    expect(await signed(runId)).toEqual({ seq: events, origin: 'example.com/office' })
    const later = await office.start('boss')
    expect(await signed(later)).toEqual({ seq: 0, origin: 'example.com/office' })
    const told = await openOffice({
      ...{ ledger, checkpoints: { file, publicKey } },
      authorize: () => ({ name: 'eve', sees: 'everything', may: ['approve'] }),
    })
    const restricted = await openOffice({
      ...{ ledger, checkpoints: { file, publicKey } },
      authorize: () => ({ name: 'eve', sees: { agents: () => true } }),
    })
    expect(await signed(runId, told)).toBeDefined()
    const answer = await answerOf(await restricted.send(`/runs/${runId}/verify`))
    expect(answer).toMatchObject({ ok: true })
    expect(answer).not.toHaveProperty('signed')
    const others = generateKeyPairSync('ed25519').publicKey
    const mistrusting = await openOffice({ ledger, checkpoints: { file, publicKey: others } })
    expect(await signed(runId, mistrusting)).toMatchObject({ seq: 0, broken: { what: 'signature' } })
    writeFileSync(file, 'nonsense\n')
    const found = await signed(runId)
    expect(found).toMatchObject({ seq: 0, broken: { what: 'file', found: 'a damaged file' } })
    expect(JSON.stringify(found)).not.toContain(folder)
  })

  it('need a ledger with a chain of hashes', () => {
    const runtime = createRuntime({ ledger: memoryLedger() })
    expect(() => createServer({ runtime, agents: [], checkpoints: { file: 'x', publicKey: 'y' } })).toThrow(
      'checkpoints sign the chain of hashes',
    )
  })
})

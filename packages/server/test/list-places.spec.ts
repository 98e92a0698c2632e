import { beforeAll, describe, expect, it } from 'vitest'
import { createRuntime, memoryLedger, type Ledger } from '@tallystick/core'
import { createServer } from '@tallystick/server'
import { answerOf, openOffice, tellingAgent, type Office } from './kit/office.ts'

/** How many runs one page looks at. */
const looked = 1_000
const placeSecret = 'what the processes of one service share'

let crowded: Ledger
let adas: readonly string[]
let bobs: readonly string[]

beforeAll(async () => {
  crowded = memoryLedger()
  const agent = tellingAgent('teller', ...Array.from({ length: looked + 3 }, () => 'Yes.'))
  const runtime = createRuntime({ ledger: crowded, agents: [agent] })
  const run = async (subject: string): Promise<string> =>
    (await runtime.run(agent, 'Well?', { subject }).result).runId
  const oldest = await run('ada')
  const between: string[] = []
  for (let count = 0; count < looked + 1; count++) between.push(await run('bob'))
  bobs = between.toReversed()
  adas = [await run('ada'), oldest]
})

interface ListPage {
  readonly status: number
  readonly runs: readonly { readonly runId: string }[]
  readonly before?: string
}

async function pageOf(office: Office, as: string, query: object = {}): Promise<ListPage> {
  const search = new URLSearchParams({ ...query }).toString()
  return (await answerOf(await office.send(`/runs?${search}`, as))) as unknown as ListPage
}

const idsOf = ({ runs }: ListPage): readonly string[] => runs.map(({ runId }) => runId)

describe('a list of runs among many that the caller does not see', () => {
  it('continues to its oldest run, page by page', async () => {
    const office = await openOffice({ ledger: crowded })
    const pages = [await pageOf(office, 'ada')]
    for (let before = pages[0]?.before; before !== undefined; before = pages.at(-1)?.before) {
      pages.push(await pageOf(office, 'ada', { before }))
    }
    expect(pages.map(idsOf)).toEqual([[adas[0]], [adas[1]]])
    const after = await pageOf(office, 'ada', { before: adas[0] })
    expect({ status: after.status, runs: after.runs }).toEqual({ status: 200, runs: [] })
    expect(idsOf(await pageOf(office, 'ada', { before: after.before }))).toEqual([adas[1]])
  })

  it('begins a page after a run that the caller sees by its id, and after no other run', async () => {
    const office = await openOffice({ ledger: crowded })
    const first = await pageOf(office, 'ada', { limit: 1 })
    expect(first).toMatchObject({ runs: [{ runId: adas[0] }], before: adas[0] })
    const bobsPage = await pageOf(office, 'bob', { limit: 2 })
    expect(bobsPage).toMatchObject({ runs: [{ runId: bobs[0] }, { runId: bobs[1] }], before: bobs[1] })
    expect(await pageOf(office, 'ada', { before: bobs[0] })).toMatchObject({
      status: 404,
      code: 'run_not_found',
    })
  })

  it('names no foreign run: its places cannot be told apart, read or made', async () => {
    const office = await openOffice({ ledger: crowded, placeSecret })
    const [one, two] = [await pageOf(office, 'ada'), await pageOf(office, 'ada')]
    const place = one.before ?? ''
    expect(place).toMatch(/^[\w-]{86}$/)
    expect(two.before).not.toBe(place)
    const bytes = Buffer.from(place, 'base64url').toString('latin1')
    for (const runId of bobs) expect(bytes.includes(runId) || place.includes(runId)).toBe(false)

    const strange = { status: 400, code: 'malformed' }
    for (const at of [0, 20, 60, 80]) {
      const other = place[at] === 'A' ? 'B' : 'A'
      const forged = `${place.slice(0, at)}${other}${place.slice(at + 1)}`
      expect(await pageOf(office, 'ada', { before: forged })).toMatchObject(strange)
    }
    for (const before of ['', 'x', place.slice(1), `${place}A`, 'A'.repeat(86), 'A'.repeat(5_000)]) {
      expect(await pageOf(office, 'ada', { before })).toMatchObject(strange)
    }
  })

  it('is continued by its own caller only, in the same session', async () => {
    const office = await openOffice({ ledger: crowded })
    const { before } = await pageOf(office, 'ada')
    const strange = { status: 400, code: 'malformed' }
    expect(await pageOf(office, 'bob', { before })).toMatchObject(strange)
    expect(await pageOf(office, 'boss', { before })).toMatchObject(strange)
    expect(await pageOf(office, 'ada', { before, sessionId: 's1' })).toMatchObject(strange)
    expect(idsOf(await pageOf(office, 'ada', { before, agent: 'teller' }))).toEqual([adas[1]])
  })

  it('is continued by another process that has the same secret', async () => {
    const { before } = await pageOf(await openOffice({ ledger: crowded, placeSecret }), 'ada')
    const same = await openOffice({ ledger: crowded, placeSecret })
    expect(idsOf(await pageOf(same, 'ada', { before }))).toEqual([adas[1]])
    for (const options of [{}, { placeSecret: placeSecret.toUpperCase() }]) {
      const other = await openOffice({ ledger: crowded, ...options })
      expect(await pageOf(other, 'ada', { before })).toMatchObject({ status: 400, code: 'malformed' })
    }
  })

  it('says nothing of a run that is in the ledger no more', async () => {
    const { before } = await pageOf(await openOffice({ ledger: crowded, placeSecret }), 'ada')
    const office = await openOffice({ placeSecret })
    const answer = await pageOf(office, 'ada', { before })
    expect(answer).toMatchObject({ status: 400, code: 'malformed' })
    expect(bobs.filter((runId) => JSON.stringify(answer).includes(runId))).toEqual([])
  })

  it('refuses a secret that can be guessed', () => {
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [] })
    expect(() => createServer({ runtime, agents: [], placeSecret: 'short' })).toThrow(
      /placeSecret .*a secret of at least 32 characters/,
    )
  })
})

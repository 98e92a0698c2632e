import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { awaitInspector, type Inspector, startInspector, visit, type Visitor } from './kit/inspector.ts'
import { callOf, openShop, shopAgent, shopConfig, type Shop } from './kit/shop.ts'
import { json, startTallystickFrom, tallystickHere } from './kit/tallystick.ts'

/** Starts the command, and enters by the URL that it prints. */
async function enter(...words: readonly string[]): Promise<Inspector & Visitor> {
  const inspector = await startInspector(...words)
  return { ...inspector, ...(await visit(inspector)) }
}

async function selfOf({ get }: Visitor): Promise<unknown> {
  return await (await get('/inspector/self')).json()
}

/** Writes an export of the runs of a shop, and returns its text. */
async function exportTo(shop: Shop, path: string): Promise<string> {
  const { stdout } = await tallystickHere('export', shop.ledgerPath)
  await writeFile(path, stdout)
  return stdout
}

describe('inspect', () => {
  it('only reads, with the agents of the configuration for a replay', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    const before = await readFile(shop.ledgerPath)
    const inspector = await enter('inspect', shop.ledgerPath, '--config', shopConfig)
    expect(await selfOf(inspector)).toMatchObject({
      may: ['replay', 'inspect'],
      agents: ['shopper'],
      title: 'runs.db',
    })
    const refused = await inspector.post(`/runs/${runId}/approve`, {
      toolCallId: pendingApprovals[0]!.toolCallId,
    })
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'not_permitted' }),
    ])
    inspector.work.kill('SIGTERM')
    expect(await inspector.work.ending).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('The page only reads.') as string,
    })
    expect(await readFile(shop.ledgerPath)).toEqual(before)
  })

  it('lets the page decide where that is allowed, and carries the decision out', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    const inspector = await enter(
      'inspect',
      shop.ledgerPath,
      ...['--allow', 'decisions, starts', '--config', shopConfig],
    )
    const toolCallId = pendingApprovals[0]!.toolCallId
    expect((await inspector.post(`/runs/${runId}/approve`, { toolCallId })).status).toBe(200)
    const result = await inspector.get(`/runs/${runId}/result?waitMs=30000`)
    expect(await result.json()).toMatchObject({ status: 'done', text: 'Payment: 5 USD paid' })
    expect((await inspector.post('/runs', { agent: 'shopper', input: 'Buy tea.' })).status).toBe(201)
    const forked = await inspector.post(`/runs/${runId}/fork`, { at: 3 })
    expect(await forked.json()).toMatchObject({ code: 'not_permitted' })
  })

  it('decides with the roles of whoever opened it', async () => {
    await using shop = await openShop()
    const agent = { ...shopAgent(), approval: () => ({ ask: 'money', approvers: { roles: ['finance'] } }) }
    const waiting = await shop.start(agent as never)
    const words = ['inspect', shop.ledgerPath, '--allow', 'decisions', '--config', shopConfig]
    const answers = []
    for (const more of [[], ['--role', 'finance']]) {
      const { post } = await enter(...words, ...more)
      const answer = await post(`/runs/${waiting.runId}/approve`, { toolCallId: callOf(waiting) })
      answers.push([answer.status, await answer.text()])
    }
    expect(answers).toEqual([
      [403, expect.stringContaining('finance')],
      [200, expect.anything()],
    ])
  })

  it('puts a decision on record where no agents are known', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    const work = startTallystickFrom(shop.folder, 'inspect', shop.ledgerPath, '--allow', 'decisions')
    const inspector = await visit(await awaitInspector(work))
    expect(await selfOf(inspector)).toMatchObject({
      agents: [],
      may: expect.not.arrayContaining(['fork']) as string[],
    })
    const [{ toolCallId } = { toolCallId: '' }] = pendingApprovals
    expect((await inspector.post(`/runs/${runId}/approve`, { toolCallId })).status).toBe(200)
    const ledger = sqliteLedger(shop.ledgerPath, { readOnly: true })
    onTestFinished(() => ledger.close())
    expect(await ledger.inbox(runId)).toMatchObject([{ command: { type: 'approve', toolCallId } }])
  })

  it('opens an export, and a folder of them, as they are', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const folder = join(shop.folder, 'exports')
    await mkdir(folder)
    const text = await exportTo(shop, join(folder, 'a.jsonl'))
    await writeFile(join(folder, 'notes.txt'), 'Not an export.')
    await writeFile(
      join(folder, 'b.jsonl'),
      text.replaceAll(runId, '01a20ad2-04d4-72fd-99e7-7861fc19641d').slice(0, -40),
    )
    await writeFile(join(folder, 'c.jsonl'), '{"none":1}\n{"none":2}\n')
    const inspector = await enter('inspect', folder)
    expect(await selfOf(inspector)).toMatchObject({ title: 'exports' })
    const listed = (await (await inspector.get('/runs')).json()) as { readonly runs: readonly object[] }
    expect(listed.runs).toHaveLength(2)
    inspector.work.kill('SIGTERM')
    const { stderr } = await inspector.work.ending
    expect(stderr).toMatch(/b\.jsonl: line \d+, the last one, is cut off/)
    expect(stderr).toMatch(/error: .*c\.jsonl: Line 1 /)
    const one = await enter('inspect', join(folder, 'a.jsonl'))
    expect((await one.get(`/runs/${runId}`)).status).toBe(200)
  })

  it.each([
    ['a file that is not there', () => 'none.db', 5, /There is no ledger at/],
    [
      'a folder without exports',
      (folder: string) => folder,
      5,
      /holds no export: no file in it ends with \.jsonl/,
    ],
    ['another kind of address', () => 'mysql://host/db', 2, /is not a ledger/],
    [
      'a file of something else',
      async (folder: string) => await put(folder, 'x'.repeat(5_000)),
      1,
      /not a SQLite database/,
    ],
    ['an empty file', async (folder: string) => await put(folder, ''), 1, /is empty/],
    [
      'a damaged export',
      async (folder: string) => await put(folder, '{"a":1}\n{"b":2}\n'),
      4,
      /^error: Line 1 /,
    ],
    ['a cut-off export', async (folder: string) => await put(folder, '{"runId":"01'), 4, /cut off/],
  ])('says what is wrong with %s', async (_, make, code, message) => {
    await using shop = await openShop()
    const ended = await tallystickHere('inspect', await make(shop.folder))
    expect([ended.code, ended.stdout]).toEqual([code, ''])
    expect(ended.stderr).toMatch(message)
  })

  it('says what is wrong with a ledger of a newer version', async () => {
    await using shop = await openShop()
    await shop.start()
    const { default: Database } = await import('better-sqlite3')
    const database = new Database(shop.ledgerPath)
    const version = database.pragma('user_version', { simple: true }) as number
    database.pragma(`user_version = ${version + 1}`)
    database.close()
    const { code, stderr } = await tallystickHere('inspect', shop.ledgerPath)
    expect([code, stderr]).toEqual([1, expect.stringContaining('Update @tallystick/ledger.')])
  })

  it('refuses what it cannot allow, and what it has no agents for', async () => {
    await using shop = await openShop()
    await shop.start()
    const unknown = await tallystickHere('inspect', shop.ledgerPath, '--allow', 'decisions,everything')
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining('everything is none of decisions, feedback, forks, starts.'),
    ])
    expect((await tallystickHere('inspect', shop.ledgerPath, '--allow', '')).code).toBe(2)
    const lacking = await tallystickHere('inspect', shop.ledgerPath, '--allow', 'forks')
    expect([lacking.code, lacking.stderr]).toEqual([2, expect.stringContaining('No configuration was found')])
  })

  it('says on a port that is taken which one, and prints JSON for programs', async () => {
    await using shop = await openShop()
    await shop.start()
    const { base } = await enter('inspect', shop.ledgerPath, '--json')
    const taken = await tallystickHere('inspect', shop.ledgerPath, '--port', new URL(base).port, '--json')
    expect(taken.code).toBe(2)
    expect(json(taken.stderr)).toMatchObject({ error: { code: 'configuration' } })
  })
})

/** Writes a file, and returns its path. */
async function put(folder: string, text: string): Promise<string> {
  const path = join(folder, 'given')
  await writeFile(path, text)
  return path
}

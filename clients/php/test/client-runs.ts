// Tests for a client of the back office in any language: the same steps, and the same answers.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { type BackOffice, startBackOffice } from '../example/back-office.ts'

const run = promisify(execFile)
const token = 'a token of these tests'

/** Runs a program of the client, and returns what it prints. */
export type Client = (
  words: readonly string[],
  env?: Readonly<Record<string, string>>,
  program?: Program,
) => Promise<string>
type Program = readonly [command: string, ...words: string[]]

/** Declares the tests of a client. Returns a function that runs it, or another program, against the same server. */
export function clientRuns(ownProgram: Program): Client {
  let folder: string
  let office: BackOffice
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tallystick-back-office-'))
    office = await startBackOffice({ ledger: join(folder, 'runs.db'), token })
  })
  afterAll(async () => {
    await office.close()
    rmSync(folder, { recursive: true })
  })
  const client: Client = async (words, more = {}, program = ownProgram) => {
    const env = {
      ...process.env,
      BACK_OFFICE_URL: office.url,
      BACK_OFFICE_TOKEN: token,
      SHOP: folder,
      ...more,
    }
    const [command, ...first] = program
    return (await run(command, [...first, ...words], { env })).stdout
  }
  const orders = (): readonly string[] => readdirSync(folder).filter((name) => name.startsWith('order-'))

  it('starts a run once, does its calls, dies after the order, and another worker ends it', async () => {
    const runId = (await client(['start', 'request-1'])).trim()
    expect((await client(['start', 'request-1'])).trim()).toBe(runId)

    expect(await client(['work', runId])).toBe(
      'waits: order_goods {"article":"lamp","pieces":40}\nsuspended: \n',
    )
    const before = await client(['follow', runId, '0'])
    expect(before).toMatch(/^\d+ stock_level starts\n\d+ stock_level starts\nread up to \d+\n$/)
    expect(orders()).toEqual([])

    const dying = client(['approve', runId], { DIES_AFTER_ORDER: 'yes' })
    await expect(dying).rejects.toMatchObject({ code: 9 })
    expect(orders()).toHaveLength(1)
    expect(await client(['work', runId])).toBe(
      'done: The script read: lamp: 3 pieces; chair: 120 pieces; 40 pieces of lamp are ordered.\n',
    )
    expect(orders()).toHaveLength(1)

    const after = await client(['follow', runId, / (\d+)\n$/.exec(before)?.[1] ?? ''])
    expect(after).toMatch(
      /^\d+ order_goods starts\nThe script read: lamp: 3 pieces; .* are ordered\.\n(\d+) answered\nread up to \1\n$/,
    )
  })

  it('refuses another token, in words of the server', async () => {
    await expect(client(['start', 'request-2'], { BACK_OFFICE_TOKEN: 'forged' })).rejects.toMatchObject({
      stderr: expect.stringContaining('unauthorized'),
    })
  })

  it('leaves a ledger whose runs keep the laws', async () => {
    const ledger = sqliteLedger(join(folder, 'runs.db'), { readOnly: true })
    const verdicts = await Array.fromAsync(verifyLedger(ledger))
    await ledger.close()
    expect(verdicts.length).toBeGreaterThan(0)
    expect(verdicts.filter(({ ok }) => !ok)).toEqual([])
  })
  return client
}

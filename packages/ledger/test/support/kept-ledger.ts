import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto'
import { join } from 'node:path'
import type { RunId } from '@tallystick/core'
import {
  verifyCheckpoints,
  writeCheckpoint,
  type Checkpoint,
  type CheckpointsVerdict,
} from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { relink } from './forged-ledger.ts'
import { tamper } from './raw-database.ts'
import { recordRun } from './record-run.ts'
import { recorded, type Recorded } from './recorded.ts'

/** Whose checkpoints they are, and who signs them. */
export const origin = 'example.com/agents'
const pair = generateKeyPairSync('ed25519')
export const { privateKey, publicKey }: KeyPairKeyObjectResult = pair

/** A ledger file with two runs, and where its checkpoints go. */
export interface Kept extends Recorded {
  readonly file: string
  readonly sign: () => Promise<Checkpoint>
  readonly compared: () => Promise<CheckpointsVerdict>
}

export async function kept(): Promise<Kept> {
  const { path, ...runs } = await recorded()
  const file = join(path, '..', 'checkpoints')
  const during = async <T>(work: (ledger: ReturnType<typeof sqliteLedger>) => Promise<T>): Promise<T> => {
    const ledger = sqliteLedger(path, { readOnly: true })
    try {
      return await work(ledger)
    } finally {
      await ledger.close()
    }
  }
  return {
    path,
    file,
    ...runs,
    sign: () => during((ledger) => writeCheckpoint(ledger, { file, key: privateKey, origin })),
    compared: () => during((ledger) => verifyCheckpoints(ledger, { file, publicKey })),
  }
}

/** A third run in a ledger file. */
export async function another(path: string): Promise<RunId> {
  const ledger = sqliteLedger(path)
  const runId = await recordRun(ledger, 3)
  await ledger.close()
  return runId
}

/** Lets a run have said something else, and computes its chain and its seal anew, as an attacker would who knows how. */
export function rewrite(path: string, runId: RunId, change: (body: string) => string): void {
  tamper(path, (database) => {
    relink(database, runId, (row) => ({ ...row, body: change(row.body) }))
  })
}

/** The answer of the run, as another one. */
export const otherAnswer = (body: string): string => body.replaceAll('is yours.', 'is Bobs.')

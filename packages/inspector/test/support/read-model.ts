import type { Ledger, RunId } from '@tallystick/core'
import { RunModel } from '../../src/page/worker/run-model.ts'

/** A run as the page has it. */
export async function readModel(ledger: Ledger, runId: RunId): Promise<RunModel> {
  const model = new RunModel()
  model.add(await Array.fromAsync(ledger.read(runId)))
  return model
}

import { defineConfig } from '@tallystick/cli'
import { chooseModel } from './examples/demo/src/choose-model.ts'
import { defaultLedgerPath } from './examples/demo/src/demo-files.ts'
import { openDemo } from './examples/demo/src/open-demo.ts'

// What `tallystick run`, `resume`, `fork` and `replay` drive the agent of the demo with: its servers come up anew at other
// ports, and a run that is on record gets the model that it was recorded with. A replay asks no model, so it needs no key.
export default defineConfig(async ({ verb, ledgerPath, model }) => {
  const modelId = verb === 'replay' ? model.modelId : chooseModel(process.env, model?.modelId)
  // Its own files lie beside the ledger; a database has no place beside it.
  const beside = ledgerPath.startsWith('postgres') ? defaultLedgerPath : ledgerPath
  const { agent, close } = await openDemo({ ledgerPath: beside, modelId })
  return { agents: [agent], close }
})

import { defineConfig } from '@tallystick/cli'
import { chooseModel } from './examples/demo/src/choose-model.ts'
import { openDemo } from './examples/demo/src/open-demo.ts'

// What `tallystick run`, `resume`, `fork` and `replay` drive the agent of the demo with: its servers come up anew at other
// ports, and a run that is on record gets the model that it was recorded with. A replay asks no model, so it needs no key.
export default defineConfig(async ({ verb, ledgerPath, model }) => {
  const modelId = verb === 'replay' ? model.modelId : chooseModel(process.env, model?.modelId)
  const { agent, close } = await openDemo({ ledgerPath, modelId })
  return { agents: [agent], close }
})

import { defineConfig } from '@tallystick/cli'
import { chooseModel } from './examples/demo/src/choose-model.ts'
import { openDemo } from './examples/demo/src/open-demo.ts'

// What `tallystick resume` and `replay` drive the runs of the demo with: the same agent, whose servers come up anew at
// other ports, and the model that the run was recorded with. A replay asks no model, so it needs no key.
export default defineConfig(async ({ verb, ledgerPath, model }) => {
  const modelId = verb === 'resume' ? chooseModel(process.env, model.modelId) : model.modelId
  const { agent, close } = await openDemo({ ledgerPath, modelId })
  return { agents: [agent], close }
})

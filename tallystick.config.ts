import { defineConfig } from '@tallystick/cli'
import { chooseModel } from './examples/demo/src/choose-model.ts'
import { openDemo } from './examples/demo/src/open-demo.ts'

// What `tallystick resume` drives the runs of the demo with: the same agent, whose servers come up anew at other
// ports, and the model that the run was started with.
export default defineConfig(async ({ ledgerPath, model }) => {
  const { agent, close } = await openDemo({ ledgerPath, modelId: chooseModel(process.env, model.modelId) })
  return { agents: [agent], close }
})

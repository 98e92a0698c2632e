import type { AgentDefinition, EventOf } from '@tallystick/core/vocabulary'
import { genAi } from '../conventions/names.ts'
import type { MaybeAttributes } from '../span/open-span.ts'
import { nameText } from '../span/span-text.ts'

/** How a model was asked to write: each setting of the run wins over the agent's. */
export function requestAttributes(
  { modelSettings: ofRun }: EventOf<'run_started'>,
  { modelSettings: ofAgent, output }: AgentDefinition,
): MaybeAttributes {
  const { temperature, topP, seed, stop, reasoningEffort } = { ...ofAgent, ...ofRun }
  return {
    [genAi.temperature]: temperature,
    [genAi.topP]: topP,
    [genAi.seed]: seed,
    [genAi.stopSequences]: stop?.map(nameText),
    [genAi.reasoningLevel]: reasoningEffort,
    [genAi.outputType]: output ? 'json' : undefined,
  }
}

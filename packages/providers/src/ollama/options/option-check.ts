import { option, type OptionCheck } from '@tallystick/core'
import { commonChecks, otherNames } from '../../shared/options/model-options.ts'
import type { OllamaOptions } from '../model.ts'

const { anyObject, anyText, fields, maybe, numberFrom, valueThat } = option

/** What `ollama()` takes beside the model id. */
export const ollamaOptions: OptionCheck = fields<OllamaOptions>(
  {
    ...commonChecks,
    apiKey: maybe(anyText),
    contextTokens: maybe(numberFrom(1, { whole: true })),
    thinking: maybe(
      valueThat("true, false, or how hard, such as 'high'", (value) => /^(bool|str)/.test(typeof value)),
    ),
    keepAlive: maybe(
      valueThat("a text such as '10m', or seconds", (value) => /^(string|number)$/.test(typeof value)),
    ),
    parameters: maybe(anyObject),
  },
  {
    ...otherNames,
    ...{ options: 'parameters', num_ctx: 'contextTokens', think: 'thinking', keep_alive: 'keepAlive' },
    ...{ temperature: 'parameters.temperature', seed: 'parameters.seed', stop: 'parameters.stop' },
  },
)

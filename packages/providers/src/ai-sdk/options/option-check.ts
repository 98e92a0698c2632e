import { option, type OptionCheck } from '@tallystick/core'
import { commonChecks, otherNames } from '../../shared/options/model-options.ts'
import type { AiSdkOptions } from './options.ts'

const { anyObject, fields, filledText, maybe, trueOrFalse } = option
const { headers, idleTimeoutMs, maxOutputTokens, onWarning, responseTimeoutMs } = commonChecks

/** What `fromAiSdk()` takes beside the model. */
export const aiSdkOptions: OptionCheck = fields<AiSdkOptions>(
  {
    ...{ headers, idleTimeoutMs, maxOutputTokens, onWarning, responseTimeoutMs },
    provider: maybe(filledText),
    settings: maybe(anyObject),
    providerOptions: maybe(anyObject),
    endOfStreamIsEnd: maybe(trueOrFalse),
    answerInInstructions: maybe(trueOrFalse),
  },
  { ...otherNames, ...{ temperature: 'settings.temperature', seed: 'settings.seed', topP: 'settings.topP' } },
)

import { ConfigurationError } from '@tallystick/core'
import { option, type OptionCheck, requireOptions } from '@tallystick/core/kit'
import { commonChecks, otherNames } from '../../shared/options/model-options.ts'
import type { AiSdkModel } from '../client/ai-sdk-model.ts'
import type { AiSdkOptions } from './options.ts'

const { anyObject, fields, filledText, maybe, trueOrFalse } = option
const { contentTimeoutMs, headers, idleTimeoutMs, maxOutputTokens, onWarning } = commonChecks
const { recordAdditions, responseTimeoutMs, totalTimeoutMs } = commonChecks

/** What `fromAiSdk()` takes beside the model. */
const aiSdkOptions: OptionCheck = fields<AiSdkOptions>(
  {
    headers,
    contentTimeoutMs,
    idleTimeoutMs,
    maxOutputTokens,
    onWarning,
    recordAdditions,
    responseTimeoutMs,
    totalTimeoutMs,
    provider: maybe(filledText),
    settings: maybe(anyObject),
    providerOptions: maybe(anyObject),
    endOfStreamIsEnd: maybe(trueOrFalse),
    answerInInstructions: maybe(trueOrFalse),
  },
  { ...otherNames, temperature: 'settings.temperature', seed: 'settings.seed', topP: 'settings.topP' },
)

/** Throws `ConfigurationError` for a model, or for options, with which no call could work. */
export function checkOptions(model: AiSdkModel, options: AiSdkOptions): void {
  checkModel(model)
  requireOptions('fromAiSdk', aiSdkOptions, options)
}

function checkModel(model: AiSdkModel): void {
  if (typeof (Object(model) as Partial<AiSdkModel>).doStream !== 'function') {
    throw new ConfigurationError(
      "fromAiSdk() got something that is no language model of the AI SDK. Pass one, such as google('gemini-3-pro') of @ai-sdk/google.",
    )
  }
  const { specificationVersion } = model
  if (specificationVersion === 'v3' || specificationVersion === 'v4') return
  throw new ConfigurationError(
    `fromAiSdk() got a model of the AI SDK's interface ${specificationVersion}, which it does not know. Use a provider of the AI SDK 6 or 7 (interface v3 or v4).`,
  )
}

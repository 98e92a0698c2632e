import { ConfigurationError } from '@tallystick/core'
import { option, type OptionCheck } from '@tallystick/core/kit'
import { commonChecks, otherNames, requireModelOptions } from '../../shared/options/model-options.ts'
import { hostOf, isAddress, type OllamaClientOptions } from '../client/client.ts'
import { sdk } from '../client/sdk.ts'
import type { OllamaOptions } from './options.ts'

const { anyObject, anyText, fields, maybe, numberFrom, valueThat } = option

/** What `ollama()` takes beside the model id. */
const ollamaOptions: OptionCheck = fields<OllamaOptions>(
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
    options: 'parameters',
    num_ctx: 'contextTokens',
    think: 'thinking',
    temperature: 'parameters.temperature',
    seed: 'parameters.seed',
    stop: 'parameters.stop',
  },
)

/** Throws `ConfigurationError` for what could not work in any call. */
export function checkOptions(modelId: string, options: OllamaOptions): void {
  requireModelOptions('ollama', ollamaOptions, { modelId, options })
  checkAddress(options)
  sdk.require('ollama')
}

function checkAddress(options: OllamaClientOptions): void {
  const host = hostOf(options)
  if (host === undefined) return
  if (/^([a-z][a-z0-9+.-]*:\/\/)?[^/?#]*@/i.test(host)) {
    throw new ConfigurationError(
      'ollama() got a baseURL (or OLLAMA_HOST) with a user and a password in it, which fetch refuses. Pass an Authorization header in the option headers.',
    )
  }
  if (!isAddress(host)) {
    throw new ConfigurationError(
      'ollama() got a baseURL (or OLLAMA_HOST) that is no address, so no call could succeed. Pass one such as "http://127.0.0.1:11434".',
    )
  }
}

import { option, type OptionalCheck, type OptionCheck, requireOptions } from '@tallystick/core/kit'

const {
  anyFunction,
  anyObject,
  anyText,
  filledText,
  listOf,
  maybe,
  milliseconds,
  numberFrom,
  recordOf,
  trueOrFalse,
} = option

/** Checks of options that mean the same to every adapter. */
export const commonChecks: {
  readonly [
    name in
      | 'baseURL'
      | 'contentTimeoutMs'
      | 'extraBody'
      | 'fetch'
      | 'headers'
      | 'idleTimeoutMs'
      | 'maxOutputTokens'
      | 'onWarning'
      | 'recordAdditions'
      | 'responseTimeoutMs'
      | 'totalTimeoutMs'
  ]: OptionalCheck
} = {
  baseURL: maybe(filledText),
  contentTimeoutMs: maybe(milliseconds),
  extraBody: maybe(anyObject),
  fetch: maybe(anyFunction),
  headers: maybe(recordOf(anyText)),
  idleTimeoutMs: maybe(milliseconds),
  maxOutputTokens: maybe(numberFrom(1, { whole: true })),
  onWarning: maybe(anyFunction),
  recordAdditions: maybe(trueOrFalse),
  responseTimeoutMs: maybe(milliseconds),
  totalTimeoutMs: maybe(milliseconds),
}

/** A key, or a function that gets one. */
export const apiKey: OptionCheck = option.valueThat(
  'a key, as text that is not empty, or a function that gets one',
  (value) => typeof value === 'function' || (typeof value === 'string' && value !== ''),
)

/** Objects in the vendor's own words. */
export const objects: OptionCheck = listOf(anyObject)

/** Names by which users of other libraries look for an option. */
export const otherNames: { readonly [name: string]: string } = {
  url: 'baseURL',
  host: 'baseURL',
  endpoint: 'baseURL',
  timeout: 'responseTimeoutMs',
}

/** Refuses a model id or options with which no call could succeed. `maker` is the function that was called. */
export function requireModelOptions(
  maker: string,
  check: OptionCheck,
  { modelId, options }: { readonly modelId: unknown; readonly options: unknown },
): void {
  requireOptions(maker, filledText, modelId, 'the model id')
  requireOptions(maker, check, options)
}

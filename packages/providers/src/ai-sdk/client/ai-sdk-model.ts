/** Just enough of a language model of the AI SDK, version 3 or 4: every provider's `provider('model')` is one. */
export interface AiSdkModel {
  readonly specificationVersion: string
  readonly provider: string
  readonly modelId: string
  /** By media type, the addresses that the provider fetches without our help. */
  readonly supportedUrls?:
    | PromiseLike<Readonly<Record<string, readonly RegExp[]>>>
    | Readonly<Record<string, readonly RegExp[]>>
    | undefined
  /** Whether the provider passes the schema of an answer on, where it says so. */
  readonly supportsStructuredOutputs?: boolean | undefined
  doStream(options: never): PromiseLike<{ readonly stream: unknown }>
}

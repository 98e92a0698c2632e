import { option, type OptionCheck, requireOptions } from '@tallystick/core/kit'
import type { PlayedFetchOptions, RecordingFetchOptions } from './options.ts'

const { anyFunction, fields, filledText, maybe, oneOf } = option

/** What `recordingFetch` takes beside the file. */
export const recordingOptions: OptionCheck = fields<RecordingFetchOptions>({ fetch: maybe(anyFunction) })

/** What `playedFetch` and `playedModel` take beside the file. */
export const playedOptions: OptionCheck = fields<PlayedFetchOptions>({
  match: maybe(oneOf(['request', 'order'])),
})

/** Throws for a file without a name, and for options that are not valid. `maker` is the function that was called. */
export function requireRecordingOptions(
  maker: string,
  check: OptionCheck,
  { file, options }: { readonly file: unknown; readonly options: unknown },
): void {
  requireOptions(maker, filledText, file, 'the file')
  requireOptions(maker, check, options)
}

import { styleText } from 'node:util'

/** The styles that a text may be put into. */
export type PaintStyle = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Puts a text into a style; leaves it as it is where there are no colours. */
export type Paint = (style: PaintStyle, text: string) => string

/** Colours for a stream: only where it is a terminal, and nobody has set `NO_COLOR`. */
export function paintFor(stream: { readonly isTTY?: boolean }, environment: NodeJS.ProcessEnv): Paint {
  if (stream.isTTY !== true || (environment['NO_COLOR'] ?? '') !== '') return (_style, text) => text
  return (style, text) => styleText(style, text, { validateStream: false })
}

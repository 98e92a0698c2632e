import { rules } from '@secretlint/secretlint-rule-preset-recommend'
import type { TextSpan } from '@tallystick/core/vocabulary'

/** The part of a rule of the scanner that is used: each reports what it finds while it reads a text. */
interface ScanRule {
  readonly meta: { readonly id: string }
  create(context: object, options: object): { readonly file: (source: object) => unknown }
}

/**
 * Rules that are not used: one takes comments for orders to find less, and a text of a model must not hide a secret so;
 * the others take all of an address for a secret, of which only the password is one.
 */
const leftOut = /(?:filter-comments|basicauth|database-connection-string)$/
/** Any shorter text holds no key of a service. */
const shortest = 16

let spans: TextSpan[] = []

/** The rules, made once: what they find goes into `spans`. */
const scanners = (rules as readonly unknown[] as readonly ScanRule[])
  .filter(({ meta }) => !leftOut.test(meta.id))
  .map((rule) =>
    rule.create(
      {
        sharedOptions: {},
        createTranslator: () => () => ({ message: '', messageId: '', data: {} }),
        ignore: () => {},
        report({ range: [start, end] }: { readonly range: readonly [number, number] }) {
          spans.push({ start, end })
        },
      },
      {},
    ),
  )

/**
 * Keys and tokens of well-known services in a text, by the rules of a scanner that others keep up to date: what they look
 * like changes more often than this package. In order, and none within another.
 */
export function scannedSecretsIn(text: string): readonly TextSpan[] {
  if (text.length < shortest) return []
  spans = []
  const source = { filePath: 'text', ext: '.txt', contentType: 'text', content: text, hasBOM: false }
  for (const { file } of scanners) file(source)
  const found: TextSpan[] = []
  for (const span of spans.sort((one, other) => one.start - other.start)) {
    const last = found.at(-1)
    if (last === undefined || span.start >= last.end) found.push(span)
    else found[found.length - 1] = { start: last.start, end: Math.max(last.end, span.end) }
  }
  return found
}

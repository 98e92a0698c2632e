import type { FilePart, ImagePart, Outcome, ResultPart, UserPart } from '@tallystick/core'

/** What a part comes to on these wires, before each says it in its own words. */
export type Carried =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'image'; readonly url: string }
  /** A PDF: its address, or its bytes as a data URL. */
  | { readonly kind: 'pdf'; readonly name: string; readonly url?: string; readonly data?: string }

/** Where a PDF may come from: `inline` wires take no addresses. */
export type PdfSources = 'inline' | 'any'

const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|typescript|toml|x-ndjson|sql)$)/

/** What a user wrote, or a tool answered. Text that holds nothing is left out; what no wire carries is told of in words. */
export function carried(parts: readonly (UserPart | ResultPart)[], pdf: PdfSources): Carried[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return words(part.text)
      case 'image':
        return [imageOf(part) ?? leftOut('image', part)]
      case 'file':
        return [fileOf(part, pdf) ?? leftOut('file', part)]
    }
  })
}

function words(text: string): Carried[] {
  return text.trim() === '' ? [] : [{ kind: 'text', text: text.toWellFormed() }]
}

function imageOf({ mediaType, data, url }: ImagePart): Carried | undefined {
  if (url !== undefined) return { kind: 'image', url }
  const type = bareType(mediaType) === 'image/jpg' ? 'image/jpeg' : bareType(mediaType)
  return data && imageTypes.has(type) ? { kind: 'image', url: `data:${type};base64,${data}` } : undefined
}

function fileOf(part: FilePart, pdf: PdfSources): Carried | undefined {
  const type = bareType(part.mediaType)
  const name = part.name?.toWellFormed() || 'document.pdf'
  if (type === 'application/pdf') {
    if (part.data) return { kind: 'pdf', name, data: `data:application/pdf;base64,${part.data}` }
    return part.url !== undefined && pdf === 'any' ? { kind: 'pdf', name, url: part.url } : undefined
  }
  const text = part.data && textTypes.test(type) ? decodedText(part.data) : ''
  if (text.trim() === '') return undefined
  return { kind: 'text', text: `${part.name ? `File "${part.name.toWellFormed()}"` : 'A file'}:\n\n${text}` }
}

/** A thing that these wires cannot carry stays visible to the model by its name. */
function leftOut(what: 'image' | 'file', part: ImagePart | FilePart): Carried {
  const name = part.type === 'file' && part.name ? ` "${part.name}"` : ''
  const place = part.url === undefined ? '' : `, at ${part.url}`
  const text = `[The ${what}${name} of type ${part.mediaType}${place}, cannot be shown here and was left out.]`
  return { kind: 'text', text: text.toWellFormed() }
}

/** What a tool answered. These wires have no mark for errors, so an error says in words that it is one. */
export function carriedResult(outcome: Outcome, content: readonly ResultPart[], pdf: PdfSources): Carried[] {
  const parts = carried(content, pdf)
  if (outcome === 'success') return parts
  if (parts.length === 0) return words(`The call ended as ${outcome}, without output.`)
  const [first, ...rest] = parts
  return first?.kind === 'text'
    ? [{ kind: 'text', text: `Error (${outcome}): ${first.text}` }, ...rest]
    : [{ kind: 'text', text: `Error (${outcome}):` }, ...parts]
}

function bareType(mediaType: string): string {
  return (mediaType.split(';')[0] ?? '').trim().toLowerCase()
}

/** The text that is encoded there; none where the data is not base64. */
function decodedText(base64: string): string {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    return new TextDecoder().decode(bytes)
  } catch {
    return ''
  }
}

import type { FilePart, ImagePart } from '@tallystick/core/vocabulary'

/** A thing that a wire cannot carry stays visible to the model by its name. */
export function leftOutText(part: ImagePart | FilePart): string {
  const name = part.type === 'file' && part.name ? ` "${part.name}"` : ''
  const { url, providerFile } = part
  const place = url === undefined ? '' : `, at ${url}`
  const keeper = providerFile === undefined ? '' : `, kept by ${providerFile.provider} as ${providerFile.id}`
  const text = `[The ${part.type}${name} of type ${part.mediaType}${place}${keeper}, cannot be shown here and was left out.]`
  return text.toWellFormed()
}

/** The id of a file that this provider keeps; none of a file that another one keeps, or that is here. */
export function keptFileId({ providerFile }: ImagePart | FilePart, provider: string): string | undefined {
  return providerFile?.provider === provider ? providerFile.id : undefined
}

/** Saves a text, or bytes in pieces, as a file of the user. */
export function saveFile(name: string, content: string | BlobPart[]): void {
  const type = "application/octet-stream";
  const blob = new Blob(typeof content === "string" ? [content] : content, { type });
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

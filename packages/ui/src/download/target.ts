import { saveFile } from "../parts/file.js";

/** A file that is written piece after piece. */
export interface Target {
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  close(): Promise<void>;
}

type FilePicker = (options: { suggestedName: string }) => Promise<{
  createWritable(): Promise<Target>;
}>;

const blobBytesMax = 1024 * 1024 * 1024;

/** A file that the user chooses, or one that the browser holds until it is complete. */
export async function openTarget(name: string): Promise<Target> {
  const picker = (window as { showSaveFilePicker?: FilePicker }).showSaveFilePicker;
  if (picker !== undefined) return (await picker({ suggestedName: name })).createWritable();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  return {
    write(bytes) {
      size += bytes.length;
      if (size > blobBytesMax)
        throw new Error("more than 1 GB: narrow the range, or use the command below");
      parts.push(bytes);
      return Promise.resolve();
    },
    close() {
      saveFile(name, parts);
      return Promise.resolve();
    },
  };
}

/** The least that a server can do with bytes: node:http piped to a file, and back. Argument: the folder. Prints its address. */
import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

const [folder] = process.argv.slice(2) as [string];
let count = 0;

const server = createServer(async (request, response) => {
  try {
    if (request.method === 'POST') {
      const name = `upload-${count++}`;
      await pipeline(request, createWriteStream(join(folder, name)));
      response.writeHead(201, { 'content-length': name.length }).end(name);
    } else {
      const place = join(folder, request.url!.slice(1));
      response.writeHead(200, { 'content-length': statSync(place).size });
      await pipeline(createReadStream(place), response);
    }
  } catch {
    response.destroy();
  }
});
server.listen(0, '127.0.0.1', () =>
  console.log(`listening on http://127.0.0.1:${(server.address() as { port: number }).port}`),
);

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

/** The server of the JDK with a context per route. Prints its port. */
public class Jdk {
    public static void main(String[] args) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        for (String route : new String[] {"denied", "limited", "exempt"}) {
            server.createContext("/" + route + "/", exchange -> answer(exchange, route));
        }
        server.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            boolean itself = path != null && path.matches("/(denied|limited|exempt)");
            answer(exchange, itself ? path.substring(1) : "other");
        });
        server.start();
        System.out.println(server.getAddress().getPort());
    }

    private static void answer(HttpExchange exchange, String route) throws IOException {
        byte[] body = ("jdk " + route + " " + quote(exchange.getRequestURI().getPath()) + "\n").getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : String.valueOf(s).toCharArray()) {
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}

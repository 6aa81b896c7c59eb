import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

/**
 * Tomcat with a servlet per route, and a second connector that decodes escaped
 * slashes and takes backslashes. Prints the two ports.
 */
public class Tomcat10 {
    public static void main(String[] args) throws Exception {
        Logger.getLogger("").setLevel(Level.SEVERE);
        Tomcat tomcat = new Tomcat();
        File base = Files.createTempDirectory("tomcat").toFile();
        tomcat.setBaseDir(base.getPath());
        tomcat.setPort(0);
        Connector strict = tomcat.getConnector();
        Connector lenient = new Connector();
        lenient.setPort(0);
        lenient.setEncodedSolidusHandling("decode");
        lenient.setAllowBackslash(true);
        lenient.setProperty("relaxedPathChars", "\\|{}^`\"<>[]");
        for (Connector c : new Connector[] {strict, lenient}) {
            c.setProperty("address", "127.0.0.1");
        }
        tomcat.getService().addConnector(lenient);
        Context context = tomcat.addContext("", base.getPath());
        for (String route : new String[] {"denied", "limited", "exempt"}) {
            add(context, route, "/" + route + "/*");
        }
        add(context, "other", "/");
        tomcat.start();
        System.out.println(strict.getLocalPort() + " " + lenient.getLocalPort());
    }

    private static void add(Context context, String route, String pattern) {
        Tomcat.addServlet(context, route, new HttpServlet() {
            @Override
            protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
                String info = request.getPathInfo();
                String path = request.getServletPath() + (info == null ? "" : info);
                response.setCharacterEncoding("UTF-8");
                response.getWriter().print("tomcat " + route + " " + quote(path) + "\n");
            }
        });
        context.addServletMappingDecoded(pattern, route);
    }

    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
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
